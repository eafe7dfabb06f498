// Purpose: the approximate instructions: their function, the documented error bound, and the float
// that a rounding profile picks inside it.
// Contract: a result is a pure function of profile, seed and operand bits. KV_SIMT_ROUNDING_NEAREST
// takes the correctly rounded float. Bounds: PTX ISA 9.0 sections 9.7.3.13 to 9.7.3.22.
#pragma once

#include "harness/simt/control/kv_simt_control.h"
#include "harness/simt/exec/math/elementary.h"

namespace kv::simt::KV_ISA {

/// The spacing of floats around x: one unit in the last place.
KV_INLINE double ulp_of(double x) {
  const int exponent = int(bits_of(x) >> 52 & 0x7ff) - 1023;
  const int clamped = exponent < -126 ? -126 : exponent > 127 ? 127 : exponent;
  return double_of(uint64_t(clamped - 23 + 1023) << 52);
}
KV_INLINE bool finite(double x) { return (bits_of(x) >> 52 & 0x7ff) != 0x7ff; }
KV_INLINE bool finite(float x) { return (bits_of(x) & 0x7f800000) != 0x7f800000; }

struct Perturbation {
  uint32_t profile;
  uint64_t seed;
  uint32_t function;
};

/// Floats in ascending order as integers.
KV_INLINE int64_t order_of(float x) {
  const uint32_t u = bits_of(x);
  return u >> 31 ? -int64_t(u & 0x7fffffff) : int64_t(u);
}
KV_INLINE float ordered(int64_t k) {
  return float_of(k < 0 ? uint32_t(-k) | 0x80000000 : uint32_t(k));
}

/// SplitMix64's finaliser: every bit of the inputs reaches every bit of the result.
KV_INLINE uint64_t mix_bits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Another float within `bound` of `exact`; `nearest` where there is none or nothing to choose.
inline __attribute__((always_inline)) uint32_t perturb(const Perturbation& how, uint32_t a,
                                                       uint32_t b, uint32_t nearest, double exact,
                                                       double bound) {
  if (!finite(exact) || !(bound > 0) || !finite(float_of(nearest))) return nearest;
  const double margin = bound * (1 - 1e-6);  // the double itself is not exact
  const float low = round_to_float(exact - margin, Round::kUp);
  const float high = round_to_float(exact + margin, Round::kDown);
  if (!finite(low) || !finite(high) || !(low <= high)) return nearest;
  if (how.profile == KV_SIMT_ROUNDING_UP) return bits_of(high);
  if (how.profile == KV_SIMT_ROUNDING_DOWN) return bits_of(low);
  const int64_t first = order_of(low), last = order_of(high);
  const uint64_t draw = mix_bits(mix_bits(how.seed + how.function) ^ (uint64_t(a) << 32 | b));
  return bits_of(ordered(first + int64_t(draw % uint64_t(last - first + 1))));
}

/// A bound that leaves a result its sign: where the exact one is 0 (of an infinity, say) there is
/// nothing to choose, and far below the least float there is no negative one.
KV_INLINE double within_sign(double bound, double y) {
  const double magnitude = y < 0 ? -y : y;
  return bound < magnitude ? bound : magnitude;
}

struct Exp2 {
  static constexpr uint32_t kId = 1;
  KV_INLINE static double argument(float x) {
    const float low = x < -200.0f ? -200.0f : x, clamped = low > 200.0f ? 200.0f : low;
    return double(clamped == clamped ? clamped : 0.0f);
  }
  KV_INLINE static double exact(float x) { return exp2_double(argument(x)); }
  /// nearest(x) from a short polynomial (Ziv, ACM TOMS 17, 1991): settled unless a bit of `doubt`
  /// is set, where the polynomial's error leaves two floats to choose from.
  KV_INLINE static uint32_t brief(float x, uint32_t* doubt) {
    const double y = exp2_brief(argument(x));
    const uint32_t low = bits_of(float(y * (1 - kBriefExp2Error)));
    const uint32_t high = bits_of(float(y * (1 + kBriefExp2Error)));
    *doubt = low ^ high;
    return x == x ? high : kNanBits;
  }
  KV_INLINE static uint32_t nearest(float x) {
    const uint32_t u = bits_of(float(exact(x)));
    return x == x ? u : kNanBits;
  }
  /// 1 and the results for infinities are exact.
  KV_INLINE static double bound(float x, double y) {
    return x == 0 || !finite(x) ? 0 : within_sign(2 * ulp_of(y), y);
  }
};

struct Log2 {
  static constexpr uint32_t kId = 2;
  KV_INLINE static double exact(float x) {
    return log2_double(x > 0 && x <= 3.4028234663852886e38f ? double(x) : 1.0);
  }
  KV_INLINE static uint32_t nearest(float x) {
    const uint32_t u = bits_of(float(exact(x)));
    if (x > 0) return x <= 3.4028234663852886e38f ? u : 0x7f800000u;
    return x == 0 ? 0xff800000u : kNanBits;
  }
  KV_INLINE static double bound(float x, double y) {
    if (!(x > 0) || x == 1) return 0;
    const double magnitude = y < 0 ? -y : y;
    return x > 0.5f && x < 2.0f ? 0x1p-22 : magnitude * 0x1p-22;
  }
};

struct Reciprocal {
  static constexpr uint32_t kId = 3;
  KV_INLINE static double exact(float x) { return 1.0 / double(x); }
  KV_INLINE static uint32_t nearest(float x) { return canonical(1.0f / x); }
  KV_INLINE static double bound(float, double y) { return within_sign(ulp_of(y), y); }
};

struct ReciprocalRoot {
  static constexpr uint32_t kId = 4;
  KV_INLINE static double exact(float x) { return 1.0 / __builtin_sqrt(double(x)); }
  KV_INLINE static uint32_t nearest(float x) {
    if (x == 0) return (bits_of(x) & 0x80000000) | 0x7f800000;
    return canonical(float(exact(x)));
  }
  KV_INLINE static double bound(float, double y) { return y * 0x1p-23 * 1.07; }  // 2^-22.9
};

struct Root {
  static constexpr uint32_t kId = 5;
  KV_INLINE static double exact(float x) { return __builtin_sqrt(double(x)); }
  KV_INLINE static uint32_t nearest(float x) { return canonical(__builtin_sqrtf(x)); }
  KV_INLINE static double bound(float x, double y) { return x == 0 ? 0 : y * 0x1p-23; }
};

struct Tanh {
  static constexpr uint32_t kId = 6;
  KV_INLINE static double exact(float x) {
    const float low = x < -20.0f ? -20.0f : x, clamped = low > 20.0f ? 20.0f : low;
    return tanh_double(double(clamped == clamped ? clamped : 0.0f));
  }
  KV_INLINE static uint32_t nearest(float x) {
    const uint32_t sign = bits_of(x) & 0x80000000;
    const uint32_t u = x == 0 ? 0 : bits_of(float(exact(x)));
    return x == x ? u | sign : kNanBits;
  }
  KV_INLINE static double bound(float x, double y) {
    const double magnitude = y < 0 ? -y : y;
    const double above = 1 - magnitude;  // the result never leaves [-1, 1]
    const double relative = magnitude * 0x1p-11;
    return x == 0 ? 0 : relative < above ? relative : above;
  }
};

struct Sine {
  static constexpr uint32_t kId = 7;
  KV_INLINE static double exact(float x) { return sine_double<0>(double(finite(x) ? x : 0.0f)); }
  KV_INLINE static uint32_t nearest(float x) {
    const uint32_t u = bits_of(float(exact(x)));
    return finite(x) ? (x == 0 ? bits_of(x) : u) : kNanBits;
  }
  KV_INLINE static double bound(float x, double) { return x == 0 ? 0 : 0x1p-21; }
};

struct Cosine {
  static constexpr uint32_t kId = 8;
  KV_INLINE static double exact(float x) { return sine_double<1>(double(finite(x) ? x : 0.0f)); }
  KV_INLINE static uint32_t nearest(float x) {
    return finite(x) ? bits_of(float(exact(x))) : kNanBits;
  }
  KV_INLINE static double bound(float, double) { return 0x1p-21; }
};

/// div.full and div.approx; the latter gives 0 for divisors above 2^126 (NaN for inf by them).
template <bool kFull>
KV_INLINE uint32_t quotient(float a, float b) {
  const uint32_t u = canonical(a / b);
  if (kFull) return u;
  const float size = float_of(bits_of(b) & 0x7fffffff);
  const bool huge = size > 8.507059173023462e37f && size <= 3.4028234663852886e38f;
  const uint32_t sign = (bits_of(a) ^ bits_of(b)) & 0x80000000;
  return huge && a == a ? (finite(a) ? sign : kNanBits) : u;
}

}  // namespace kv::simt::KV_ISA
