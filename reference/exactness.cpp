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

// Keys that are left out weigh less than 2^-59 as the kernel rounds them. Together they have to
// stay below the grid of every step that a value of the column takes part in, 2^-25 of it at the
// finest: a truncated sum would lose a unit to them. One bit is kept for the rounding of `skipped`.
constexpr int kSkippedBits = 59 - 25 - 1;

}  // namespace

UnitWeights unit_weights(const Profile& p, const UnitRow& row) {
  UnitWeights w;
  if (row.biased || p.splits != 1 || p.probability_normalised) return w;
  uint64_t ones = 0;
  for (UnitRow::Kind kind : row.kinds) {
    if (kind == UnitRow::kOther) return w;
    ones += kind == UnitRow::kZeroScore;
    w.negligible.push_back(kind == UnitRow::kNegligible);
  }
  w.certified = ones > 0;
  const int bits = std::min(accumulator_bits(p.values), accumulator_bits(kFmaChain));
  w.row_sum = w.certified && ones <= uint64_t{1} << bits;
  return w;
}

bool column_is_exact(const Accumulation& a, const Column& column) {
  return column_fits(accumulator_bits(a), column);
}

bool column_fits(int bits, const Column& column) {
  int lowest = 1024;
  double sum = 0, skipped = 0;
  for (size_t i = 0; i < column.skip.size(); ++i) {
    const double v = column.values[i * column.stride];
    if (column.skip[i]) skipped += std::fabs(v);
    if (v == 0 || column.skip[i]) continue;
    lowest = std::min(lowest, lowest_bit(v));
    sum += std::fabs(v);
  }
  if (sum == 0) return true;
  if (!(skipped <= std::ldexp(1.0, std::clamp(lowest + kSkippedBits, -1022, 1023)))) return false;
  if (!(column.floor <= std::ldexp(1.0, std::clamp(lowest + bits, -1022, 1023)))) return false;
  // The sum is exact when the test succeeds; when it was rounded it is far too large anyway.
  return sum <= std::ldexp(1.0, std::clamp(lowest + bits, -1022, 1023));
}

}  // namespace kv::reference
