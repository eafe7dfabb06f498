// The stated errors, against MPFR (correctly rounded, 256 bits), in every binade.
#include "reference/elementary.h"

#include <gtest/gtest.h>

#include <bit>
#include <boost/multiprecision/mpfr.hpp>
#include <cmath>
#include <cstdlib>

#include "harness/core/philox.h"
#include "reference/fast/exponential.h"

namespace kv::reference {
namespace {

using Big = boost::multiprecision::number<
    boost::multiprecision::mpfr_float_backend<77, boost::multiprecision::allocate_stack>,
    boost::multiprecision::et_off>;

double relative_error(double got, const Big& want) {
  return static_cast<double>(abs((Big(got) - want) / want));
}

// The significand's 52 bits at random, with the given exponent.
double in_binade(int exponent, uint64_t index) {
  const uint64_t fraction = Philox{.key = 5}.word(exponent + 2000, index) >> 12;
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52 | fraction);
}

uint64_t samples() { return std::getenv("KV_FULL") ? 200'000 : 1'000; }

template <class Function, class Truth>
double worst_error(int lowest, int highest, double limit, Function f, Truth truth) {
  double worst = 0;
  for (int exponent = lowest; exponent <= highest; ++exponent) {
    for (uint64_t i = 0; i < samples(); ++i) {
      const double x = in_binade(exponent, i);
      if (x <= limit) worst = std::max(worst, relative_error(f(x), truth(Big(x))));
    }
  }
  return worst;
}

TEST(Elementary, ExponentialOfNonpositive) {
  const double worst = worst_error(
      -60, 9, 708, [](double x) { return exp_nonpositive(-x); }, [](Big x) { return exp(-x); });
  RecordProperty("worst_in_2^-53", std::to_string(worst * 0x1p53));
  EXPECT_LE(worst, 0x1p-51);
  EXPECT_GT(worst, 0x1p-54);  // a test that sees no rounding at all tests nothing
}

TEST(Elementary, ExponentialAtTheEnds) {
  EXPECT_EQ(exp_nonpositive(0.0), 1.0);
  EXPECT_EQ(exp_nonpositive(-0.0), 1.0);
  EXPECT_EQ(exp_nonpositive(-HUGE_VAL), 0.0);
  EXPECT_EQ(exp_nonpositive(-708.5), 0.0);
  EXPECT_GT(exp_nonpositive(-708.0), 0.0);
}

TEST(Elementary, Logarithm) {
  const double worst = worst_error(0, 40, HUGE_VAL, log_at_least_one, [](Big x) { return log(x); });
  EXPECT_LE(worst, 0x1p-50);
  EXPECT_GT(worst, 0x1p-54);
  EXPECT_EQ(log_at_least_one(1.0), 0.0);
}

TEST(Elementary, LogarithmNextToOne) {
  for (int k = 1; k <= 52; ++k) {
    const double x = 1.0 + std::ldexp(1.0, -k);
    EXPECT_LE(relative_error(log_at_least_one(x), log(Big(x))), 0x1p-50) << k;
  }
}

TEST(Elementary, PowersOfTwo) {
  const auto truth = [](Big x) { return exp(x * log(Big(2))); };
  EXPECT_LE(worst_error(-60, 9, 1000, exp2_of, truth), 0x1p-51);
  const auto negative = [](double x) { return exp2_of(-x); };
  EXPECT_LE(worst_error(-60, 9, 1000, negative, [&](Big x) { return truth(-x); }), 0x1p-51);
  EXPECT_EQ(exp2_of(-10), 0x1p-10);
}

TEST(Elementary, HyperbolicTangent) {
  const double worst = worst_error(-60, 9, HUGE_VAL, tanh_of, [](Big x) { return tanh(x); });
  EXPECT_LE(worst, 0x1p-50);
  EXPECT_EQ(tanh_of(-0.75), -tanh_of(0.75));
  EXPECT_EQ(tanh_of(1000), 1.0);
}

TEST(Elementary, FourLanesGiveTheBitsOfOne) {
  for (uint64_t i = 0; i < 4000; i += 4) {
    double x[4], e[4], t[4];
    for (int lane = 0; lane < 4; ++lane)
      x[lane] = -in_binade(static_cast<int>(i % 70) - 60, i + lane);
    store(e, exp_nonpositive<Lanes>(load(x)));
    store(t, hyperbolic_tangent<Lanes>(load(x)));
    for (int lane = 0; lane < 4; ++lane) {
      EXPECT_EQ(std::bit_cast<uint64_t>(e[lane]),
                std::bit_cast<uint64_t>(exp_nonpositive(x[lane])));
      EXPECT_EQ(std::bit_cast<uint64_t>(t[lane]), std::bit_cast<uint64_t>(tanh_of(x[lane])));
    }
  }
}

}  // namespace
}  // namespace kv::reference
