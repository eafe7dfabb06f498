#include "harness/diff/shift.h"

namespace kv {

std::vector<Shift> shifts(const ErrorDistribution& before, const ErrorDistribution& after,
                          const ShiftLimits& limits) {
  constexpr struct {
    const char* name;
    double share;
  } kQuantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};
  std::vector<Shift> all;
  for (const auto& [name, share] : kQuantiles) {
    all.push_back({name, before.quantile(share), after.quantile(share)});
  }
  all.push_back({"largest", before.largest(), after.largest()});
  for (Shift& s : all) {
    s.regressed = s.after > limits.floor && s.after > limits.factor * s.before;
  }
  return all;
}

}  // namespace kv
