#include "reference/exactness.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kv::reference {
namespace {

// Bits that an accumulator keeps of a sum of integers.
int accumulator_bits(const Accumulation& a) {
  return a.fused_multiply_add ? 24 : std::min(a.fraction_bits, a.result_bits);
}

// Exponent of the lowest set bit of x, which is not 0.
int lowest_bit(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  const uint64_t fraction = bits & 0x000fffffffffffff;
  const uint64_t significand = exponent == 0 ? fraction : fraction | uint64_t{1} << 52;
  return std::max(exponent, 1) - 1075 + std::countr_zero(significand);
}

}  // namespace

ExactWeights exact_weights(const Profile& p, const ExactRow& row) {
  ExactWeights e;
  e.weights = row.scores_zero && !row.biased && p.splits == 1 && !p.probability_normalised;
  const int bits = std::min(accumulator_bits(p.values), accumulator_bits(kFmaChain));
  e.row_sum = e.weights && row.keys <= uint64_t{1} << bits;
  return e;
}

bool column_is_exact(const Accumulation& a, std::span<const double> values, size_t stride) {
  int lowest = 1024;
  double sum = 0;
  for (size_t i = 0; i < values.size(); i += stride) {
    if (values[i] == 0) continue;
    lowest = std::min(lowest, lowest_bit(values[i]));
    sum += std::fabs(values[i]);
  }
  if (sum == 0) return true;
  // The sum is exact when the test succeeds; when it was rounded it is far too large anyway.
  return sum <= std::ldexp(1.0, std::clamp(lowest + accumulator_bits(a), -1022, 1023));
}

}  // namespace kv::reference
