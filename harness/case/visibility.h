// Purpose: which slots a query row sees, as one range, for callers that only count.
// Contract: agrees with visible_slots for sequences without holes, rows without trees and cases
// without a mask tensor.
#pragma once

#include <cstdint>

#include "harness/case/timeline.h"

namespace kv {

struct SlotRange {
  uint32_t begin = 0, end = 0;  // begin == end: sees nothing
  uint32_t size() const { return end - begin; }
};

SlotRange visible_range(const Mask& mask, const PlannedRow& row, uint32_t query);

/// Whether visible_slots has no 1.
bool sees_nothing(const Case& c, const Sequence& sequence, const PlannedRow& row, QueryHead of);

/// Whether the tree of a verify step lets a row see a key: old slots and PAD are no part of it, and
/// a row that stands there is not restricted.
struct TreePlace {
  int64_t query_slot = 0;
  int64_t key = 0;
};
bool tree_shows(const Sequence& sequence, const PlannedRow& row, TreePlace where);

}  // namespace kv
