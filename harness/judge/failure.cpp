#include "harness/judge/failure.h"

#include "harness/case/data.h"
#include "harness/core/hash.h"

namespace kv {
namespace {

// Digest of K and V of every slot that the request holds in the layer, in order of slots.
std::string digest_of_slots(const StepView& view, const Sequence& sequence, uint32_t layer) {
  Hasher hasher;
  const uint32_t page_slots = view.c.pool.page_slots;
  for (bool value : {false, true}) {
    for (size_t s = 0; s < sequence.slots.size(); ++s) {
      const PagePlace place{layer, value, sequence.pages[s / page_slots]};
      hasher.add_bytes(view.pool.slot(place, s % page_slots));
    }
  }
  return hex64(hasher.digest());
}

}  // namespace

bool is_pad_row(const Timeline& timeline, const RowPlace& place) {
  const int64_t slot = place.slot();
  return slot >= 0 && timeline.sequence(place.row->request).slots[static_cast<size_t>(slot)].pad;
}

Divergence divergence_at(const StepView& view, const PlannedRow& row, uint32_t layer) {
  const Sequence& sequence = view.timeline.sequence(row.request);
  const Shape& shape = view.c.shape;
  const uint64_t bytes = shape.layers * slot_bytes(shape);
  Divergence d;
  d.op_index = view.step.op_index;
  d.request = row.request.value;
  d.batch_slot = row.batch_slot;
  d.layer = layer;
  d.kv_length = row.kv_length;
  d.position_offset = sequence.position_offset;
  for (PageId page : sequence.pages) d.block_table.push_back(page.value);
  d.cache_bytes_allocated = sequence.pages.size() * view.c.pool.page_slots * bytes;
  d.cache_bytes_live = sequence.slots.size() * bytes;
  d.slot_digest = digest_of_slots(view, sequence, layer);
  return d;
}

std::string hex_bits(DType type, uint32_t bits) {
  return "0x" + hex64(bits).substr(16 - 2 * dtype_bytes(type));
}

}  // namespace kv
