// Purpose: the step-faithful accumulation of tensor cores, and the 8-bit
// formats that they read. Contract: docs/numerics.md §1.2 (Fasi et al., PeerJ CS
// 7:e330, 2021; Xie et al., arXiv 2511.10909): one fused step over K products
// and the accumulator, each summand cut (truncated) at 2^(emax - F), emax being
// the largest unnormalised exponent, the sum cut to t fraction bits. Ampere: K
// = 8, F = 24, t = 23; Hopper: K = 16, F = 25, t = 23.
#pragma once

#include "harness/simt/exec/math/float.h"

namespace kv::simt::KV_ISA {

KV_INLINE float e4m3_value(uint32_t b) {
  const uint32_t m = b & 0x7f;
  if (m == 0x7f) return float_of(kNanBits);
  const float x = m >> 3 ? float_of((m + (120u << 3)) << 20) : float(m) * 0x1p-9f;
  return b & 0x80 ? -x : x;
}

/// Exponent of the leading bit of a float, here as a double, as stored:
/// subnormals have the smallest normal one.
KV_INLINE int stored_exponent(double x) {
  const int field = int(bits_of(float(x)) >> 23 & 0xff);
  return (field ? field : 1) - 127;
}

/// x, exact in double, as an integer multiple of 2^unit, cut towards zero.
KV_INLINE int64_t cut(double x, int unit) {
  const uint64_t u = bits_of(x);
  const int field = int(u >> 52 & 0x7ff);
  if (field == 0) return 0;
  const int64_t significand = int64_t((u & 0xfffffffffffff) | uint64_t{1} << 52);
  const int shift = unit - (field - 1075);
  const int64_t m = shift > 62    ? 0
                    : shift >= 0  ? significand >> shift
                    : shift > -10 ? significand << -shift
                                  : 0;
  return u >> 63 ? -m : m;
}

/// sum * 2^unit cut to a float's 24 bits towards zero.
KV_INLINE float cut_to_float(int64_t sum, int unit) {
  uint64_t m = sum < 0 ? uint64_t(0) - uint64_t(sum) : uint64_t(sum);
  if (m == 0) return 0.0f;
  const int top = 63 - __builtin_clzll(m);
  if (top > 23) m = m >> (top - 23) << (top - 23);
  // Below the normal range the float has fewer bits: cut there too.
  const double x = double(m) * double_of(uint64_t(unit + 1023) << 52);
  return round_to_float(sum < 0 ? -x : x, Round::kZero);
}

template <int kK>
inline __attribute__((always_inline)) void step_by_step(bool ampere, const double (&a)[16][kK],
                                                        const double (&b)[kK][8],
                                                        double (&out)[16][8]) {
  const int group = ampere ? 8 : 16, fraction = ampere ? 24 : 25;
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      float c = float(out[m][n]);
      for (int k0 = 0; k0 < kK; k0 += group) {
        const int end = k0 + group < kK ? k0 + group : kK;
        int top = c == 0 ? -300 : stored_exponent(c);
        double plain = c;
        for (int k = k0; k < end; ++k) {
          plain += a[m][k] * b[k][n];
          if (a[m][k] == 0 || b[k][n] == 0) continue;
          const int e = stored_exponent(a[m][k]) + stored_exponent(b[k][n]);
          top = e > top ? e : top;
        }
        if ((bits_of(plain) >> 52 & 0x7ff) == 0x7ff) {  // infinities and NaN
          c = float(plain);
          continue;
        }
        if (top == -300) continue;
        const int unit = top - fraction;
        int64_t sum = cut(double(c), unit);
        for (int k = k0; k < end; ++k) sum += cut(a[m][k] * b[k][n], unit);
        c = cut_to_float(sum, unit);
      }
      out[m][n] = double(c);
    }
  }
}

}  // namespace kv::simt::KV_ISA
