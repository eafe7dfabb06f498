// Purpose: exp and tanh for the double tier, without libm, for one double or four lanes alike.
// Contract: relative error at most 2^-51 (exp, on normal results; below -708 the result is 0) and
// 2^-50 (tanh). Plain multiplications and additions only.
// Method: exp(x) = 2^k exp(r), k = rint(x log2 e), |r| <= ln2/2 + 2^-40. ln2 is split so that
// k*ln2_high is exact. The Taylor polynomial to r^13 truncates below 2^-57 relative; what remains
// is the rounding of the last addition (2^-53), of r (2^-54) and of the tail (below 2^-53).
// elementary_test compares with MPFR in every binade.
#pragma once

#include "reference/fast/lanes.h"

namespace kv::reference {

inline constexpr double kExpLowest = -708.0;

template <class D>
struct ReducedExp {
  D tail;     // exp(r) - 1
  D shifted;  // k + 1.5 * 2^52: its low bits are k in two's complement
  D k;
};

template <class D>
KV_LANES_INLINE ReducedExp<D> reduced_exp(D x) {
  constexpr double kLog2e = 0x1.71547652b82fep+0;
  constexpr double kLn2High = 0x1.62e42fefa3800p-1;  // 11 trailing zero bits
  constexpr double kLn2Low = 0x1.ef35793c76730p-45;
  constexpr double kShift = 0x1.8p52;
  const D shifted = x * kLog2e + kShift;
  const D k = shifted - kShift;
  const D r = (x - k * kLn2High) - k * kLn2Low;
  const D r2 = r * r, r4 = r2 * r2;
  // 1/2! .. 1/13!, summed in pairs to shorten the chain.
  const D low = (r * (1.0 / 6) + 0.5) + r2 * (r * (1.0 / 120) + 1.0 / 24);
  const D middle = (r * (1.0 / 5040) + 1.0 / 720) + r2 * (r * (1.0 / 362880) + 1.0 / 40320);
  const D high =
      (r * (1.0 / 39916800) + 1.0 / 3628800) + r2 * (r * (1.0 / 6227020800.0) + 1.0 / 479001600);
  const D tail = r + r2 * (low + r4 * (middle + r4 * high));
  return {tail, shifted, k};
}

/// exp(x) for x <= 0; -infinity gives 0.
template <class D>
KV_LANES_INLINE D exp_nonpositive(D x) {
  const D clamped = larger(x, broadcast(kExpLowest, x));
  const ReducedExp<D> e = reduced_exp(clamped);
  const D result = from_bits(to_bits(e.tail + 1.0) + (to_bits(e.shifted) << 52));
  return select(x < kExpLowest, broadcast(0, x), result);
}

/// tanh(x) for finite x: -expm1(-2|x|) / (2 + expm1(-2|x|)), with x's sign.
template <class D>
KV_LANES_INLINE D hyperbolic_tangent(D x) {
  const D twice = larger(magnitude(x) * -2.0, broadcast(-80, x));  // tanh(40) is 1 to 2^-115
  const ReducedExp<D> e = reduced_exp(twice);
  const D power = from_bits((to_bits(e.shifted) << 52) + to_bits(broadcast(1, x)));
  const D expm1 = e.tail * power + (power - 1.0);
  const D result = -expm1 / (expm1 + 2.0);
  return select(x < 0.0, -result, result);
}

}  // namespace kv::reference
