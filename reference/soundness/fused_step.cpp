#include "reference/soundness/fused_step.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace kv::reference {
namespace {

constexpr int kNoExponent = -4000;

int exponent_of(double x) {
  if (x == 0) return kNoExponent;
  return static_cast<int>(std::bit_cast<uint64_t>(x) >> 52 & 0x7ff) - 1023;
}

double power_of_two(int e) {
  return std::bit_cast<double>(static_cast<uint64_t>(std::clamp(e, -1022, 1023) + 1023) << 52);
}

// x towards zero with `bits` fraction bits.
float toward_zero(double x, int bits) {
  const uint64_t mask = ~((uint64_t{1} << (52 - bits)) - 1);
  return static_cast<float>(std::bit_cast<double>(std::bit_cast<uint64_t>(x) & mask));
}

float fused_step(const Accumulation& m, float c, const Products& p, size_t first, size_t last) {
  int largest = exponent_of(c);
  for (size_t i = first; i < last; ++i) {
    const double a = p.a[i * p.a_stride], b = p.b[i * p.b_stride];
    if (a == 0 || b == 0) continue;
    const int of_a = std::max(exponent_of(a), exponent_of(p.a_normal));
    const int of_b = std::max(exponent_of(b), exponent_of(p.b_normal));
    largest = std::max(largest, of_a + of_b);
  }
  if (largest == kNoExponent) return c;
  // Truncated operands are integers in units of the grid; their sum is exact in double.
  const double inverse = power_of_two(m.fraction_bits - largest);
  const double grid = power_of_two(largest - m.fraction_bits);
  double total = std::trunc(double{c} * inverse);
  for (size_t i = first; i < last; ++i) {
    total += std::trunc(p.a[i * p.a_stride] * p.b[i * p.b_stride] * inverse);
  }
  return toward_zero(total * grid, m.result_bits);
}

}  // namespace

float sum_of_products(const Accumulation& m, float c, const Products& p) {
  if (m.fused_multiply_add) {
    for (size_t i = 0; i < p.count; ++i) {
      c = std::fma(static_cast<float>(p.a[i * p.a_stride]), static_cast<float>(p.b[i * p.b_stride]),
                   c);
    }
    return c;
  }
  for (size_t first = 0; first < p.count; first += m.products) {
    c = fused_step(m, c, p, first, std::min<size_t>(first + m.products, p.count));
  }
  return c;
}

}  // namespace kv::reference
