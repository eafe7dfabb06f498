// Every tier against interval arithmetic.
#include "reference/precise/enclosure.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/precise/numbers.h"
#include "reference/soundness/drawn_head.h"

namespace kv::reference {
namespace {

template <class T>
void expect_enclosed(const Estimate<T>& e, const Enclosure& truth) {
  EXPECT_LE(to_double_down(T(e.value - e.own_error)), truth.high);
  EXPECT_GE(to_double_up(T(e.value + e.own_error)), truth.low);
}

TEST(Enclosure, EveryTierAgreesWithIntervalArithmetic) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Draw draw(seed + 900);
    TestHead head = draw_head(draw, {.slots_max = 48});
    const RowInputs inputs = row_inputs(head.block(), 0);
    if (inputs.count() == 0) continue;
    const Profile profile = resolve_profile({});
    const RowQuestion question{.columns = {0, 7}};
    const auto d = precise_row<double>(inputs, profile, question);
    const auto dd = precise_row<DoubleDouble>(inputs, profile, question);
    const auto big = precise_row<Mpfr256>(inputs, profile, question);
    for (int64_t column : {-1, 0, 1}) {
      const Enclosure truth = enclose(inputs, column == 1 ? 7 : column);
      const auto pick = [&](const auto& row) {
        return column < 0 ? row.lse : row.columns[static_cast<size_t>(column)];
      };
      expect_enclosed(pick(d), truth);
      expect_enclosed(pick(dd), truth);
      expect_enclosed(pick(big), truth);
      // Two neighbouring doubles at most: the interval itself is far thinner.
      EXPECT_LE(truth.high - truth.low, std::fabs(truth.high) * 0x1p-51 + 1e-300);
    }
  }
}

TEST(Enclosure, KnownValue) {
  TestHead head({.slots = 2, .dim_k = 1, .dim_v = 1, .scale = 1.0f});
  head.query = {0};
  head.value = {1, 2};
  const Enclosure e = enclose(row_inputs(head.block(), 0), 0);
  EXPECT_LE(e.low, 1.5);
  EXPECT_GE(e.high, 1.5);
  const Enclosure lse = enclose(row_inputs(head.block(), 0), -1);
  EXPECT_LE(lse.low, 0.6931471805599453);
  EXPECT_GE(lse.high, 0.693147180559945);
}

}  // namespace
}  // namespace kv::reference
