// Fails when errors that grew are not a regression, or ones that nobody could notice are.
#include "harness/diff/shift.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace kv {
namespace {

ErrorDistribution of(double largest) {
  ErrorDistribution d;
  for (int i = 1; i <= 1000; ++i) d.add(largest * i / 1000);
  return d;
}

bool regressed(double before, double after, const ShiftLimits& limits = {}) {
  const auto all = shifts(of(before), of(after), limits);
  return std::any_of(all.begin(), all.end(), [](const Shift& s) { return s.regressed; });
}

TEST(Shift, ErrorsThatGrewBeyondTheFactorAreARegression) {
  EXPECT_TRUE(regressed(0.2, 0.4));
  EXPECT_FALSE(regressed(0.2, 0.4, {.factor = 3}));
  EXPECT_FALSE(regressed(0.2, 0.22));
  EXPECT_FALSE(regressed(0.4, 0.2));
  EXPECT_FALSE(regressed(0.3, 0.3));
}

TEST(Shift, ErrorsFarFromTheBoundAreNoNews) {
  EXPECT_FALSE(regressed(0.001, 0.01));
  EXPECT_TRUE(regressed(0.001, 0.01, {.floor = 0.005}));
}

TEST(Shift, OneElementIsEnoughForTheLargest) {
  ErrorDistribution after = of(0.1);
  after.add(0.9);
  const auto all = shifts(of(0.1), after, {});
  EXPECT_TRUE(all.back().regressed);
  EXPECT_FALSE(all.front().regressed);
}

}  // namespace
}  // namespace kv
