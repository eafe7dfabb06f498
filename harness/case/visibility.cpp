#include "harness/case/visibility.h"

#include <algorithm>

#include "harness/case/mask_bits.h"
#include "harness/core/check.h"

namespace kv {
namespace {

// The last key that row `query` may see under the causal rule; what the window is measured from.
int64_t anchor(const Mask& mask, const PlannedRow& row, uint32_t query) {
  return mask.causal == Causal::kTopLeft ? int64_t{query} : query_slot(row, query);
}

bool causal_and_window_allow(const Mask& mask, const PlannedRow& row, uint32_t query, int64_t key) {
  const int64_t limit = anchor(mask, row, query);
  if (mask.causal != Causal::kNone && key > limit) return false;
  if (mask.window_left >= 0 && key < limit - mask.window_left) return false;
  if (mask.window_right >= 0 && key > limit + mask.window_right) return false;
  return true;
}

class RowVisibility {
 public:
  RowVisibility(const Case& c, const Sequence& sequence, const PlannedRow& row, QueryHead of)
      : mask_(c.mask), sequence_(sequence), row_(row), query_(of.query), tensor_(c, sequence, of) {
    KV_CHECK(sequence.slots.size() >= row.kv_length && of.query < row.queries,
             "the row is not of this sequence");
  }
  bool shows(uint32_t key) const {
    return !sequence_.slots[key].pad && causal_and_window_allow(mask_, row_, query_, key) &&
           tree_shows(sequence_, row_, {query_slot(row_, query_), key}) && tensor_.shows(key);
  }

 private:
  const Mask& mask_;
  const Sequence& sequence_;
  const PlannedRow& row_;
  const uint32_t query_;
  const MaskRow tensor_;
};

}  // namespace

// Of the new tokens of a verify step, a row sees its own token and that token's ancestors.
bool tree_shows(const Sequence& sequence, const PlannedRow& row, TreePlace where) {
  const int64_t first_new = int64_t{row.kv_length} - row.append_slots;
  const auto node_of = [&](int64_t slot) -> int64_t {
    if (slot < first_new || sequence.slots.at(static_cast<size_t>(slot)).pad) return -1;
    int64_t node = 0;
    for (int64_t s = first_new; s < slot; ++s) node += !sequence.slots[static_cast<size_t>(s)].pad;
    return node;
  };
  const int64_t key_node = row.tree_parents.empty() ? -1 : node_of(where.key);
  int64_t node = row.tree_parents.empty() ? -1 : node_of(where.query_slot);
  if (key_node < 0 || node < 0) return true;
  while (node > key_node) node = row.tree_parents.at(static_cast<size_t>(node));
  return node == key_node;
}

std::vector<uint8_t> visible_slots(const Case& c, const Sequence& sequence, const PlannedRow& row,
                                   QueryHead of) {
  const RowVisibility shown(c, sequence, row, of);
  std::vector<uint8_t> visible(row.kv_length);
  for (uint32_t key = 0; key < row.kv_length; ++key) visible[key] = shown.shows(key);
  return visible;
}

bool sees_nothing(const Case& c, const Sequence& sequence, const PlannedRow& row, QueryHead of) {
  const RowVisibility shown(c, sequence, row, of);
  for (uint32_t key = 0; key < row.kv_length; ++key)
    if (shown.shows(key)) return false;
  return true;
}

SlotRange visible_range(const Mask& mask, const PlannedRow& row, uint32_t query) {
  KV_CHECK(!row.holes && row.tree_parents.empty(), "the visible slots are not one range");
  const int64_t limit = anchor(mask, row, query);
  int64_t begin = row.key_begin, end = row.key_end;
  if (mask.causal != Causal::kNone) end = std::min(end, limit + 1);
  if (mask.window_left >= 0) begin = std::max(begin, limit - mask.window_left);
  if (mask.window_right >= 0) end = std::min(end, limit + mask.window_right + 1);
  if (begin >= end) return {};
  return {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
}

}  // namespace kv
