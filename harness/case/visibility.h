// Purpose: which slots a query row sees, as one range, for callers that only count.
// Contract: agrees with visible_slots for sequences without holes and rows without trees.
#pragma once

#include <cstdint>

#include "harness/case/timeline.h"

namespace kv {

struct SlotRange {
  uint32_t begin = 0, end = 0;  // begin == end: sees nothing
  uint32_t size() const { return end - begin; }
};

SlotRange visible_range(const Mask& mask, const PlannedRow& row, uint32_t query);

}  // namespace kv
