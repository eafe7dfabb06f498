// Purpose: IEEE arithmetic as PTX defines it, without libm: rounding modes, flush to zero, the
// canonical NaN, conversions of half precision.
// Contract: every function is exact in its last bit and gives the same bits on every machine.
// Sources: PTX ISA 9.0 sections 9.7.3 to 9.7.5 and 9.7.9; Boldo and Melquiond, "Emulation of FMA
// and correctly rounded sums: proved algorithms using rounding to odd" (IEEE TC 57, 2008).
#pragma once

#include <cstdint>

#include "harness/simt/exec/isa/isa.h"

namespace kv::simt::KV_ISA {

enum class Round : uint8_t { kNearest, kZero, kDown, kUp };

KV_INLINE uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
KV_INLINE uint64_t bits_of(double x) { return __builtin_bit_cast(uint64_t, x); }
KV_INLINE float float_of(uint32_t u) { return __builtin_bit_cast(float, u); }
KV_INLINE double double_of(uint64_t u) { return __builtin_bit_cast(double, u); }

inline constexpr uint32_t kNanBits = 0x7fffffff;
inline constexpr uint64_t kNanBits64 = 0x7ff8000000000000;

/// The value, or the canonical NaN.
KV_INLINE uint32_t canonical(float x) { return x == x ? bits_of(x) : kNanBits; }
KV_INLINE uint64_t canonical(double x) { return x == x ? bits_of(x) : kNanBits64; }
/// Subnormals become zeros of their sign.
KV_INLINE uint32_t flush(uint32_t u) { return (u & 0x7f800000) == 0 ? u & 0x80000000 : u; }
KV_INLINE float flush(float x) { return float_of(flush(bits_of(x))); }
/// .sat: to [0, 1], NaN to +0.
KV_INLINE uint32_t saturate(uint32_t u) {
  const float x = float_of(u);
  return x > 0.0f ? (x < 1.0f ? u : 0x3f800000u) : 0u;
}

/// a + b in double, rounded to odd: the sticky information that a later rounding needs is kept.
KV_INLINE double add_odd(double a, double b) {
  const double s = a + b;
  const double t = s - a;
  const double error = (a - (s - t)) + (b - t);
  const uint64_t u = bits_of(s);
  const bool finite = (u & 0x7ff0000000000000) != 0x7ff0000000000000;
  if (!finite || !(error != 0) || (u & 1)) return s;
  // s is even and inexact: its odd neighbour in the direction of the error.
  const bool away = (error > 0) == (s > 0);
  return double_of(away ? u + 1 : u - 1);
}

/// RN(a * b + c) for floats: the product is exact in double, the sum rounded to odd (53 >= 2*24+2).
KV_INLINE float fma_exact(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return float(add_odd(double(a) * double(b), double(c)));
#endif
}

/// A double to float in any rounding mode. The double must be exact or rounded to odd.
KV_INLINE float round_to_float(double x, Round mode) {
  const float nearest = float(x);
  if (mode == Round::kNearest || !(x == x)) return nearest;
  const uint32_t u = bits_of(nearest);
  const double back = double(nearest);
  if (back == x) return nearest;
  const bool up = mode == Round::kUp || (mode == Round::kZero && x < 0);
  if (up ? back > x : back < x) return nearest;  // already on the right side
  if ((u & 0x7fffffff) == 0) return float_of(up ? 1u : 0x80000001u);
  const bool away = up == !(u >> 31);
  return float_of(away ? u + 1 : u - 1);
}

/// binary16 to binary32; NaN becomes canonical.
KV_INLINE uint32_t half_to_float(uint32_t h) {
  const uint32_t sign = (h & 0x8000) << 16;
  const uint32_t magnitude = (h & 0x7fff) << 13;
  const uint32_t exponent = magnitude & 0x0f800000;
  const uint32_t normal = magnitude + (112u << 23);
  const float subnormal = float_of(magnitude + (113u << 23)) - float_of(113u << 23);
  const uint32_t special = magnitude == 0x0f800000 ? 0x7f800000u | sign : kNanBits;
  return exponent == 0x0f800000 ? special : (exponent == 0 ? bits_of(subnormal) : normal) | sign;
}
KV_INLINE float half_value(uint32_t h) { return float_of(half_to_float(h)); }

/// A float to binary16, to nearest even; NaN becomes 0x7fff.
KV_INLINE uint32_t float_to_half(uint32_t u) {
  const uint32_t sign = u >> 16 & 0x8000;
  const uint32_t a = u & 0x7fffffff;
  // Subnormal halves: adding 0.5 lines the bits up at the end of the significand and rounds.
  const uint32_t small = bits_of(float_of(a) + float_of(126u << 23)) - (126u << 23);
  const uint32_t normal = (a - (112u << 23) + 0xfff + (a >> 13 & 1)) >> 13;
  const uint32_t finite = a < (113u << 23) ? small : normal;
  const uint32_t magnitude = a > 0x7f800000 ? 0x7fffu : a >= 0x477ff000 ? 0x7c00u : finite;
  return a > 0x7f800000 ? 0x7fffu : magnitude | sign;
}
/// A float to bfloat16, to nearest even; NaN becomes 0x7fff.
KV_INLINE uint32_t float_to_bfloat(uint32_t u) {
  const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  return (u & 0x7fffffff) > 0x7f800000 ? 0x7fffu : rounded;
}
KV_INLINE float bfloat_value(uint32_t h) { return float_of(h << 16); }

/// A double, exact or rounded to odd, to a format of `fraction` bits and exponents from `emin`,
/// in any mode: the magnitude as an integer of that format (exponent and fraction), not clamped.
KV_INLINE uint64_t round_to_format(double x, int fraction, int emin, Round mode) {
  const uint64_t u = bits_of(x);
  const uint64_t a = u & 0x7fffffffffffffff;
  if (a == 0) return 0;
  const int exponent = int(a >> 52) - 1023;
  const uint64_t significand = (a & 0xfffffffffffff) | uint64_t{1} << 52;
  const int unit = exponent < emin ? emin - exponent : 0;
  const int drop = 52 - fraction + unit;
  const uint64_t base = exponent < emin ? 0 : uint64_t(exponent - emin) << fraction;
  if (drop > 60) {  // below half of the smallest subnormal
    const bool up = (mode == Round::kUp && !(u >> 63)) || (mode == Round::kDown && u >> 63);
    return up ? 1 : 0;
  }
  const uint64_t kept = significand >> drop;
  const uint64_t rest = significand & ((uint64_t{1} << drop) - 1);
  const uint64_t half = uint64_t{1} << (drop - 1);
  bool up = false;
  if (mode == Round::kNearest) up = rest > half || (rest == half && (kept & 1));
  if (mode == Round::kUp) up = rest != 0 && !(u >> 63);
  if (mode == Round::kDown) up = rest != 0 && u >> 63;
  // kept carries the implicit bit of a normal number: that is exponent field 1.
  return base + kept + (up ? 1 : 0);
}
/// binary16 and bfloat16 from a double, exact or rounded to odd.
KV_INLINE uint32_t double_to_half(double x, Round mode) {
  if (!(x == x)) return 0x7fff;
  const uint32_t sign = uint32_t(bits_of(x) >> 48) & 0x8000;
  uint64_t m = round_to_format(x, 10, -14, mode);
  const bool clip =
      mode == Round::kZero || (mode == Round::kDown && !sign) || (mode == Round::kUp && sign);
  if (m >= 0x7c00) m = clip && (bits_of(x) << 1 >> 53) != 0x7ff ? 0x7bff : 0x7c00;
  return uint32_t(m) | sign;
}
KV_INLINE uint32_t double_to_bfloat(double x, Round mode) {
  if (!(x == x)) return 0x7fff;
  const uint32_t sign = uint32_t(bits_of(x) >> 48) & 0x8000;
  uint64_t m = round_to_format(x, 7, -126, mode);
  const bool clip =
      mode == Round::kZero || (mode == Round::kDown && !sign) || (mode == Round::kUp && sign);
  if (m >= 0x7f80) m = clip && (bits_of(x) << 1 >> 53) != 0x7ff ? 0x7f7f : 0x7f80;
  return uint32_t(m) | sign;
}

}  // namespace kv::simt::KV_ISA
