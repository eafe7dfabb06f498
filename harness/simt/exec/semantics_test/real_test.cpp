// The arithmetic under the definitions, against the host's own IEEE arithmetic.
#include "harness/simt/exec/semantics_test/real.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "harness/simt/exec/semantics_test/values.h"

namespace kv::simt::semantics {
namespace {

float as_float(uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); }
double as_double(uint64_t bits) { return std::bit_cast<double>(bits); }

void expect_float(uint64_t got, float want, uint64_t a, uint64_t b) {
  if (std::isnan(want)) {
    EXPECT_EQ(got, 0x7fffffffu) << std::hex << a << " " << b;
  } else {
    EXPECT_EQ(got, std::bit_cast<uint32_t>(want)) << std::hex << a << " " << b;
  }
}

TEST(Real, NearestAgreesWithTheHostInSinglePrecision) {
  const auto values = operand_tuples({"f32", "f32"}, 4000);
  for (size_t i = 0; i < values[0].size(); ++i) {
    const uint64_t a = values[0][i], b = values[1][i];
    const Real x = read(kF32, a), y = read(kF32, b);
    const float p = as_float(a), q = as_float(b);
    const Round near = Round::kNearest;
    expect_float(round(kF32, add(x, y, near), near), p + q, a, b);
    expect_float(round(kF32, multiply(x, y), near), p * q, a, b);
    expect_float(round(kF32, divide(x, y), near), p / q, a, b);
    expect_float(round(kF32, fma(x, y, x, near), near), std::fma(p, q, p), a, b);
  }
}

TEST(Real, NearestAgreesWithTheHostInDoublePrecision) {
  const auto values = operand_tuples({"f64", "f64"}, 800);
  for (size_t i = 0; i < values[0].size(); ++i) {
    const double p = as_double(values[0][i]), q = as_double(values[1][i]);
    const Real x = read(kF64, values[0][i]), y = read(kF64, values[1][i]);
    const double sum = p + q, product = p * q;
    if (!std::isnan(sum)) {
      EXPECT_EQ(round(kF64, add(x, y, Round::kNearest), Round::kNearest),
                std::bit_cast<uint64_t>(sum));
    }
    if (!std::isnan(product)) {
      EXPECT_EQ(round(kF64, multiply(x, y), Round::kNearest), std::bit_cast<uint64_t>(product));
    }
    if (!std::isnan(p)) {
      EXPECT_EQ(round(kF32, x, Round::kNearest), std::bit_cast<uint32_t>(float(p)));
    }
  }
}

TEST(Real, EveryShortFormatReadsAndRoundsToItself) {
  for (const Format& format : {kF16, kBf16, kE4m3, kE5m2}) {
    for (uint64_t bits = 0; bits < uint64_t{1} << format.bits(); ++bits) {
      if (is_nan(format, bits)) continue;
      for (const Round mode : {Round::kNearest, Round::kZero, Round::kDown, Round::kUp}) {
        EXPECT_EQ(round(format, read(format, bits), mode), bits);
      }
    }
  }
}

TEST(Real, DirectedRounding) {
  const Real tiny = read(kF32, 1), third = divide(from_integer(1), from_integer(3));
  EXPECT_EQ(round(kF16, tiny, Round::kUp), 1u);
  EXPECT_EQ(round(kF16, tiny, Round::kDown), 0u);
  EXPECT_EQ(round(kF16, negate(tiny), Round::kDown), 0x8001u);
  EXPECT_EQ(round(kF16, negate(tiny), Round::kZero), 0x8000u);
  EXPECT_EQ(round(kF32, third, Round::kUp), round(kF32, third, Round::kZero) + 1);
  const Real big = from_integer(70000);
  EXPECT_EQ(round(kF16, big, Round::kNearest), 0x7c00u);
  EXPECT_EQ(round(kF16, big, Round::kZero), 0x7bffu);
  EXPECT_EQ(round(kF16, negate(big), Round::kUp), 0xfbffu);
  EXPECT_EQ(round(kF16, negate(big), Round::kDown), 0xfc00u);
  EXPECT_EQ(round(kE4m3, from_integer(464), Round::kNearest, true), 0x7eu);
  EXPECT_EQ(round(kE4m3, from_integer(500), Round::kNearest), 0x7fu);
  EXPECT_EQ(round(kE5m2, from_integer(70000), Round::kNearest, true), 0x7bu);
  EXPECT_EQ(round(kTf32, read(kF32, 0x3f801000), Round::kNearestAway), 0x3f802000u >> 13);
  EXPECT_EQ(round(kTf32, read(kF32, 0x3f801000), Round::kNearest), 0x3f800000u >> 13);
}

}  // namespace
}  // namespace kv::simt::semantics
