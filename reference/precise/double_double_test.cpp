#include "reference/precise/double_double.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/core/philox.h"
#include "reference/precise/numbers.h"

namespace kv::reference {
namespace {

Mpfr256 big(DoubleDouble x) { return Mpfr256(x.high) + Mpfr256(x.low); }

double relative_error(DoubleDouble got, const Mpfr256& want) {
  return to_double_up(absolute(Mpfr256((big(got) - want) / want)));
}

DoubleDouble random_number(uint64_t index, int exponent) {
  const Philox random{.key = 11};
  const double high = std::ldexp(1 + random.word(0, index) * 0x1p-64, exponent);
  return quick_two_sum(high, high * 0x1p-54 * (random.word(1, index) * 0x1p-64 - 0.5));
}

TEST(DoubleDouble, ArithmeticKeepsItsPromise) {
  for (uint64_t i = 0; i < 20'000; ++i) {
    const DoubleDouble a = random_number(i, static_cast<int>(i % 40) - 20);
    const DoubleDouble b = random_number(i + 1'000'000, static_cast<int>(i / 40 % 40) - 20);
    ASSERT_LE(relative_error(a + b, big(a) + big(b)), 0x1p-102);
    ASSERT_LE(relative_error(a * b, big(a) * big(b)), 0x1p-100);
    ASSERT_LE(relative_error(a / b, big(a) / big(b)), 0x1p-100);
    // Differences: relative to the operands, whatever cancels.
    const Mpfr256 error = absolute(Mpfr256(big(a - b) - (big(a) - big(b))));
    ASSERT_LE(to_double_up(error), 0x1p-102 * (a.high + b.high));
  }
}

TEST(DoubleDouble, FunctionsKeepTheirPromise) {
  for (int exponent = -60; exponent <= 9; ++exponent) {
    for (uint64_t i = 0; i < 40; ++i) {
      const DoubleDouble x = random_number(i + 100 * (exponent + 60), exponent);
      if (x.high < 600) {  // beyond, the low part is subnormal
        ASSERT_LE(relative_error(exp_nonpositive(-x), exp(Mpfr256(-big(x)))), 0x1p-95) << x.high;
      }
      ASSERT_LE(relative_error(tanh_of(x), tanh(big(x))), 0x1p-94) << x.high;
      if (x.high >= 1) {
        ASSERT_LE(relative_error(log_at_least_one(x), log(big(x))), 0x1p-94) << x.high;
      }
    }
  }
}

TEST(DoubleDouble, Ends) {
  EXPECT_EQ(exp_nonpositive(DoubleDouble(0)).high, 1);
  EXPECT_EQ(exp_nonpositive(DoubleDouble(-HUGE_VAL)).high, 0);
  EXPECT_EQ(log_at_least_one(DoubleDouble(1)).high, 0);
  EXPECT_EQ(tanh_of(DoubleDouble(-500)).high, -1);
}

TEST(DoubleDouble, DirectedConversionsBracket) {
  for (uint64_t i = 0; i < 1000; ++i) {
    for (DoubleDouble x : {random_number(i, 3), -random_number(i, 3)}) {
      EXPECT_LE(Mpfr256(to_double_down(x)), big(x));
      EXPECT_GE(Mpfr256(to_double_up(x)), big(x));
      EXPECT_LE(to_double_up(x) - to_double_down(x), 0x1p-48);
    }
  }
}

}  // namespace
}  // namespace kv::reference
