// Purpose: the parts that a step's attention is done in, one after the other, when the case asks
// for a cascade (exec.cascade_slots): each part sees some slots of every request, and the states
// that the parts return are merged. Contract: part i has the slots [i * cascade_slots, (i + 1) *
// cascade_slots), the last of at most kCascadePartsMax has the rest. A step without cascade has no
// parts. Example: for (uint32_t i = 0; i < cascade_parts(c, step); ++i) use(cascade_range(c, step,
// i));
#pragma once

#include <algorithm>

#include "harness/case/timeline.h"
#include "harness/case/visibility.h"

namespace kv {

inline constexpr uint32_t kCascadePartsMax = 6;

inline uint32_t cascade_parts(const Case& c, const PlannedStep& step) {
  const uint64_t slots = c.exec.cascade_slots;
  if (slots == 0) return 0;
  uint64_t longest = 1;
  for (const PlannedRow& row : step.rows) longest = std::max<uint64_t>(longest, row.kv_length);
  return static_cast<uint32_t>(std::min<uint64_t>((longest + slots - 1) / slots, kCascadePartsMax));
}

inline SlotRange cascade_range(const Case& c, const PlannedStep& step, uint32_t part) {
  const uint32_t begin = part * c.exec.cascade_slots;
  const bool last = part + 1 == cascade_parts(c, step);
  return {begin, last ? ~uint32_t{0} : begin + c.exec.cascade_slots};
}

}  // namespace kv
