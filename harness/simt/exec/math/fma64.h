// Purpose: the fused multiply-add of doubles in any rounding mode, without hardware for it.
// Contract: correctly rounded, subnormals included; to nearest even the same bits as an FMA unit.
#pragma once

#include "harness/simt/exec/math/float.h"

namespace kv::simt::KV_ISA {

struct Unpacked {
  uint64_t significand;  // 0 for zero
  int exponent;          // of its last bit
  bool negative;
};

KV_INLINE Unpacked unpack_double(double x) {
  const uint64_t u = bits_of(x), fraction = u & 0xfffffffffffff;
  const int field = int(u >> 52 & 0x7ff);
  return {field ? fraction | uint64_t{1} << 52 : fraction, (field ? field : 1) - 1075,
          bool(u >> 63)};
}

/// A 128-bit significand, its last bit standing for 2^exponent and sticky, rounded to a double.
KV_INLINE double pack_double(unsigned __int128 m, int exponent, bool negative, Round mode) {
  const int top =
      m >> 64 ? 127 - __builtin_clzll(uint64_t(m >> 64)) : 63 - __builtin_clzll(uint64_t(m));
  int drop = top - 52;
  if (exponent + drop < -1074) drop = -1074 - exponent;
  uint64_t kept;
  if (drop > 127) {
    kept = (mode == Round::kUp && !negative) || (mode == Round::kDown && negative) ? 1 : 0;
  } else if (drop > 0) {
    const unsigned __int128 rest = m & (((unsigned __int128)1 << drop) - 1);
    const unsigned __int128 half = (unsigned __int128)1 << (drop - 1);
    kept = uint64_t(m >> drop);
    bool up = false;
    if (mode == Round::kNearest) up = rest > half || (rest == half && (kept & 1));
    if (mode == Round::kUp) up = rest != 0 && !negative;
    if (mode == Round::kDown) up = rest != 0 && negative;
    if (up) ++kept;
  } else {
    kept = uint64_t(m << -drop);
  }
  const int last = exponent + drop;
  // kept holds the implicit bit, which adds one to the exponent field; a subnormal has neither.
  uint64_t u = kept + (uint64_t(last + 1074) << 52);
  if (int64_t(u) < 0 || u >= 0x7ff0000000000000) {
    const bool clip = mode == Round::kZero || (mode == Round::kDown && !negative) ||
                      (mode == Round::kUp && negative);
    u = clip ? 0x7fefffffffffffff : 0x7ff0000000000000;
  }
  return double_of(u | uint64_t(negative) << 63);
}

KV_INLINE double fma_in_mode(double a, double b, double c, Round mode) {
  const uint64_t special = 0x7ff0000000000000;
  if ((bits_of(a) & special) == special || (bits_of(b) & special) == special ||
      (bits_of(c) & special) == special) {
    const bool product_finite =
        (bits_of(a) & special) != special && (bits_of(b) & special) != special;
    return product_finite ? c : a * b + c;  // a * b may overflow only when it is not needed
  }
  const Unpacked x = unpack_double(a), y = unpack_double(b), z = unpack_double(c);
  const bool negative = x.negative != y.negative;
  const double zero = mode == Round::kDown ? -0.0 : 0.0;  // an exact cancellation
  if (x.significand == 0 || y.significand == 0) {
    if (z.significand != 0) return c;
    return negative == z.negative ? (negative ? -0.0 : 0.0) : zero;
  }
  unsigned __int128 p = (unsigned __int128)(x.significand) * y.significand;
  int pe = x.exponent + y.exponent;
  if (z.significand == 0) return pack_double(p, pe, negative, mode);
  unsigned __int128 q = z.significand;
  int qe = z.exponent;
  // Both to 126 bits, then the one with the smaller last bit is shifted, its lost bits kept sticky.
  const auto normalise = [](unsigned __int128& m, int& e) {
    const int lead =
        m >> 64 ? __builtin_clzll(uint64_t(m >> 64)) : 64 + __builtin_clzll(uint64_t(m));
    if (lead > 2) m <<= lead - 2, e -= lead - 2;
  };
  normalise(p, pe);
  normalise(q, qe);
  const auto shift = [](unsigned __int128& m, int by) {
    if (by > 126) {
      m = 1;
    } else if (by > 0) {
      const bool lost = (m & (((unsigned __int128)1 << by) - 1)) != 0;
      m = m >> by | (lost ? 1 : 0);
    }
  };
  const int e = pe > qe ? pe : qe;
  shift(p, e - pe);
  shift(q, e - qe);
  if (negative == z.negative) return pack_double(p + q, e, negative, mode);
  if (p == q) return zero;
  return p > q ? pack_double(p - q, e, negative, mode) : pack_double(q - p, e, z.negative, mode);
}

KV_INLINE double fma_exact(double a, double b, double c) {
#ifdef __FMA__
  return __builtin_fma(a, b, c);
#else
  return fma_in_mode(a, b, c, Round::kNearest);
#endif
}

}  // namespace kv::simt::KV_ISA
