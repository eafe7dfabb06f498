#include <bit>

#include "harness/case/data.h"
#include "harness/case/head_inputs.h"
#include "harness/case/kv_scales.h"
#include "harness/case/mask_bits.h"
#include "harness/core/check.h"
#include "harness/core/hash.h"

namespace kv {
namespace {

class CaseHasher {
 public:
  explicit CaseHasher(const Case& c) : case_(c) {}

  uint64_t run() {
    Result<Timeline> timeline = Timeline::create(case_);
    KV_CHECK(timeline.ok(), "input_digest of an unlawful case");
    add_heads();
    for (uint32_t i = 0; i < case_.ops.size(); ++i) {
      for (const PlannedRow& row : timeline->apply(i).rows) {
        add_row(timeline->sequence(row.request), row);
      }
    }
    return hash_.digest();
  }

  uint64_t run_appends() {
    Result<Timeline> timeline = Timeline::create(case_);
    KV_CHECK(timeline.ok(), "append_digest of an unlawful case");
    for (uint32_t i = 0; i < case_.ops.size(); ++i) {
      for (const PlannedRow& row : timeline->apply(i).rows) {
        const Sequence& sequence = timeline->sequence(row.request);
        for (const uint64_t n : {row.request.value, row.append_slots, row.kv_length}) hash_.add(n);
        add_conversion(sequence, row);
        for (uint32_t layer = 0; layer < case_.shape.layers; ++layer)
          add_appended(sequence, row, layer);
      }
    }
    return hash_.digest();
  }

 private:
  void add_heads() {
    for (uint32_t layer = 0; layer < case_.shape.layers; ++layer) {
      for (uint32_t head = 0; head < case_.shape.query_heads; ++head) {
        const HeadPlace where{layer, head};
        if (case_.shape.alibi) add_number(alibi_slope(case_, where));
        if (case_.shape.sinks) add_number(sink_logit(case_, where));
      }
    }
  }
  void add_number(float number) { hash_.add(uint64_t{std::bit_cast<uint32_t>(number)}); }

  void add_row(const Sequence& sequence, const PlannedRow& row) {
    for (const uint64_t n :
         {uint64_t{row.request.value}, uint64_t{row.append_slots}, uint64_t{row.queries},
          uint64_t{row.kv_length}, uint64_t{row.key_begin}, uint64_t{row.key_end}}) {
      hash_.add(n);
    }
    for (const PageId page : sequence.pages) hash_.add(uint64_t{page.value});
    for (const int32_t parent : row.tree_parents) hash_.add(static_cast<uint64_t>(parent));
    add_mask(sequence, row);
    add_conversion(sequence, row);
    const int64_t first_query = query_slot(row, 0);
    for (uint32_t layer = 0; layer < case_.shape.layers; ++layer) {
      add_appended(sequence, row, layer);
      add_tensor(sequence, row, layer, {.role = TensorRole::kQuery, .first = first_query});
    }
  }

  void add_mask(const Sequence& sequence, const PlannedRow& row) {
    if (case_.mask.encoding == MaskEncoding::kNone) return;
    for (uint32_t head = 0; head < mask_heads(case_); ++head) {
      for (uint32_t q = 0; q < row.queries; ++q) {
        const MaskRow mask(case_, sequence, {q, head});
        for (uint32_t key = 0; key < row.kv_length; ++key) hash_.add(uint64_t{mask.shows(key)});
      }
    }
  }

  /// Positions and scales of the new slots, where they matter.
  void add_conversion(const Sequence& sequence, const PlannedRow& row) {
    const Shape& shape = case_.shape;
    for (uint64_t slot = row.kv_length - row.append_slots; slot < row.kv_length; ++slot) {
      if (shape.rope.pairing != RopePairing::kNone)
        hash_.add(static_cast<uint64_t>(sequence.slots[slot].position));
      if (shape.kv_scale == KvScale::kNone) continue;
      for (uint32_t layer = 0; layer < shape.layers; ++layer) {
        for (const bool value : {false, true}) {
          for (uint32_t head = 0; head < shape.kv_heads; ++head)
            add_number(slot_scale(case_, sequence, slot, {layer, value, head}));
        }
      }
    }
  }

  void add_appended(const Sequence& sequence, const PlannedRow& row, uint32_t layer) {
    const int64_t first_new = int64_t{row.kv_length} - row.append_slots;
    for (const TensorRole role : {TensorRole::kKey, TensorRole::kValue})
      add_tensor(sequence, row, layer, {.role = role, .first = first_new});
  }

  struct Part {
    TensorRole role = TensorRole::kQuery;
    int64_t first = 0;  // slot of the first row; the last is the sequence's last
  };
  void add_tensor(const Sequence& sequence, const PlannedRow& row, uint32_t layer, Part part) {
    const bool is_query = part.role == TensorRole::kQuery;
    const uint32_t heads = is_query ? case_.shape.query_heads : case_.shape.kv_heads;
    buffer_.resize(row_bytes(case_.shape, part.role));
    for (int64_t slot = part.first; slot < int64_t{row.kv_length}; ++slot) {
      const Slot identity = slot_or_tokenless(case_, sequence, slot);
      for (uint32_t head = 0; head < heads; ++head) {
        const RowAddress where{.role = part.role,
                               .request = row.request,
                               .slot = is_query ? 0 : static_cast<uint64_t>(slot),
                               .query_slot = is_query ? slot : 0,
                               .layer = layer,
                               .head = head,
                               .kv_length = row.kv_length};
        fill_row(case_, where, identity, buffer_);
        hash_.add_bytes(buffer_);
      }
    }
  }

  const Case& case_;
  Hasher hash_;
  std::vector<std::byte> buffer_;
};

}  // namespace

uint64_t input_digest(const Case& c) { return CaseHasher(c).run(); }
uint64_t append_digest(const Case& c) { return CaseHasher(c).run_appends(); }

}  // namespace kv
