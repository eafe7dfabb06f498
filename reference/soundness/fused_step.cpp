#include "reference/soundness/fused_step.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "harness/core/check.h"
#include "harness/core/wide.h"

namespace kv::reference {
namespace {

constexpr int64_t kNoExponent = -4000;

[[gnu::always_inline]] inline int64_t exponent_of(double x) {
  const auto biased = static_cast<int64_t>(std::bit_cast<uint64_t>(x) >> 52 & 0x7ff);
  return x == 0 ? kNoExponent : biased - 1023;
}

[[gnu::always_inline]] inline double power_of_two(int64_t e) {
  const int64_t biased = std::clamp<int64_t>(e, -1022, 1023) + 1023;
  return std::bit_cast<double>(static_cast<uint64_t>(biased) << 52);
}

// x towards zero with `bits` fraction bits.
[[gnu::always_inline]] inline float toward_zero(double x, int bits) {
  const uint64_t mask = ~((uint64_t{1} << (52 - bits)) - 1);
  return static_cast<float>(std::bit_cast<double>(std::bit_cast<uint64_t>(x) & mask));
}

constexpr size_t kMost = 32;  // products of a step

/// The accumulator after one step of `count` products. Everything is exact but the truncations, so
/// the order of the sum does not matter.
template <size_t kStrideA, size_t kStrideB>
[[gnu::always_inline]] inline float fused_step(const Accumulation& m, float c, const Products& p,
                                               size_t first, size_t count) {
  const int64_t a_normal = exponent_of(p.a_normal), b_normal = exponent_of(p.b_normal);
  const double *a = p.a + first * kStrideA, *b = p.b + first * kStrideB;
  alignas(32) double product[kMost];
  int64_t largest = exponent_of(c);
  for (size_t i = 0; i < count; ++i) {
    const double x = a[i * kStrideA], y = b[i * kStrideB];
    product[i] = x * y;
    const int64_t both = std::max(exponent_of(x), a_normal) + std::max(exponent_of(y), b_normal);
    largest = std::max(largest, product[i] == 0 ? kNoExponent : both);
  }
  if (largest == kNoExponent) return c;
  const double inverse = power_of_two(m.fraction_bits - largest);
  const double grid = power_of_two(largest - m.fraction_bits);
  double sum[4] = {std::trunc(double{c} * inverse), 0, 0, 0};
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (size_t k = 0; k < 4; ++k) sum[k] += std::trunc(product[i + k] * inverse);
  }
  for (; i < count; ++i) sum[0] += std::trunc(product[i] * inverse);
  return toward_zero((sum[0] + sum[1] + (sum[2] + sum[3])) * grid, m.result_bits);
}

template <size_t kStrideA, size_t kStrideB>
[[gnu::always_inline]] inline float fused_steps(const Accumulation& m, float c, const Products& p) {
  for (size_t first = 0; first < p.count; first += m.products) {
    c = fused_step<kStrideA, kStrideB>(m, c, p, first,
                                       std::min<size_t>(p.count - first, m.products));
  }
  return c;
}

KV_WIDE float sum_of_pairs(const Accumulation& m, float c, const Products& p) {
  return fused_steps<1, 1>(m, c, p);
}
KV_WIDE float sum_of_multiples(const Accumulation& m, float c, const Products& p) {
  return fused_steps<1, 0>(m, c, p);
}

}  // namespace

float sum_of_products(const Accumulation& m, float c, const Products& p) {
  KV_CHECK(m.products <= kMost, "a step has more products than the simulation holds");
  if (!m.fused_multiply_add)
    return p.b_stride == 0 ? sum_of_multiples(m, c, p) : sum_of_pairs(m, c, p);
  for (size_t i = 0; i < p.count; ++i) {
    c = std::fma(static_cast<float>(p.a[i]), static_cast<float>(p.b[i * p.b_stride]), c);
  }
  return c;
}

}  // namespace kv::reference
