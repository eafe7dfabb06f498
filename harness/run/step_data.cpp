#include "harness/run/step_data.h"

namespace kv {
namespace {

/// First slot, relative to the sequence, whose row of the tensor the step needs.
int64_t first_slot(const PlannedRow& row, TensorRole role) {
  if (role == TensorRole::kQuery) return query_slot(row, 0);
  return int64_t{row.kv_length} - row.append_slots;
}

}  // namespace

void fill_step_tensor(const Case& c, const Timeline& timeline, const PlannedStep& step,
                      LayerRole what, std::vector<std::byte>& bytes) {
  const bool is_query = what.role == TensorRole::kQuery;
  const uint32_t heads = is_query ? c.shape.query_heads : c.shape.kv_heads;
  const uint64_t bytes_each = row_bytes(c.shape, what.role);
  uint64_t tokens = 0;
  for (const PlannedRow& row : step.rows) tokens += is_query ? row.queries : row.append_slots;
  bytes.resize(tokens * heads * bytes_each);

  std::span<std::byte> rest = bytes;
  for (const PlannedRow& row : step.rows) {
    const Sequence& sequence = timeline.sequence(row.request);
    for (int64_t slot = first_slot(row, what.role); slot < int64_t{row.kv_length}; ++slot) {
      const Slot identity = slot_or_tokenless(c, sequence, slot);
      for (uint32_t head = 0; head < heads; ++head) {
        const RowAddress where{.role = what.role,
                               .request = row.request,
                               .slot = is_query ? 0 : static_cast<uint64_t>(slot),
                               .query_slot = is_query ? slot : 0,
                               .layer = what.layer,
                               .head = head,
                               .kv_length = row.kv_length};
        fill_row(c, where, identity, rest.first(bytes_each));
        rest = rest.subspan(bytes_each);
      }
    }
  }
}

}  // namespace kv
