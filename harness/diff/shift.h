// Purpose: how far the errors of a build moved inside their bounds, and when that is a regression.
// Contract: compares quantiles of |error| / bound and the largest. One has regressed when it is
// both more than `factor` times what it was and more than `floor`: below that, an error is far from
// anything that could be noticed, and a doubling of it is no news.
// Example: for (const Shift& s : shifts(before, after, {.factor = 1.5})) if (s.regressed) ...
#pragma once

#include <string>
#include <vector>

#include "harness/judge/error_distribution.h"

namespace kv {

struct ShiftLimits {
  double factor = 1.5;
  double floor = 0.05;  // of the bound
};

struct Shift {
  std::string name;  // "p50", "p99", "largest", ...
  double before = 0, after = 0;
  bool regressed = false;
};

std::vector<Shift> shifts(const ErrorDistribution& before, const ErrorDistribution& after,
                          const ShiftLimits& limits);

}  // namespace kv
