// Purpose: the functions behind the approximate instructions, in double, from own polynomials.
// Contract: plain multiplications and additions only, so that the result bits do not depend on
// FMA. Relative error below 2^-50 (lg2 near 1 included); rounded to float this is the correctly
// rounded result (math_test checks ex2, lg2, rcp, rsqrt, sqrt, tanh, sin and cos against MPFR).
#pragma once

#include "harness/simt/exec/math/float.h"

namespace kv::simt::KV_ISA {

/// x rounded to an integer, ties to even, for |x| < 2^51.
KV_INLINE double round_even(double x) {
  const double magic = 6755399441055744.0;  // 1.5 * 2^52
  return (x + magic) - magic;
}
/// 2^n for integral n in [-1022, 1023].
KV_INLINE double power_of_two(double n) {
  const double magic = 6755399441055744.0 + 1023.0;
  return double_of(bits_of(n + magic) << 52);
}

/// 2^x for |x| <= 1000: Taylor's series of exp(f ln 2), |f| <= 1/2, to degree 13.
KV_INLINE double exp2_double(double x) {
  const double n = round_even(x);
  const double f = x - n;
  double p = 1.3691488853904128e-12;
  p = p * f + 2.5678435993488202e-11;
  p = p * f + 4.4455382718708116e-10;
  p = p * f + 7.0549116208011233e-09;
  p = p * f + 1.0178086009239699e-07;
  p = p * f + 1.3215486790144309e-06;
  p = p * f + 1.5252733804059840e-05;
  p = p * f + 1.5403530393381610e-04;
  p = p * f + 1.3333558146428443e-03;
  p = p * f + 9.6181291076284772e-03;
  p = p * f + 5.5504108664821580e-02;
  p = p * f + 2.4022650695910072e-01;
  p = p * f + 6.9314718055994531e-01;
  p = p * f + 1.0;
  return p * power_of_two(n);
}

/// a * b + c, perhaps fused: only where the last bits do not decide.
KV_INLINE double about_fma(double a, double b, double c) {
#ifdef __FMA__
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}
/// 2^x for |x| <= 1000 within a relative error of 2^-39.6: Chebyshev's interpolation of degree 8.
inline constexpr double kBriefExp2Error = 0x1p-39;
inline constexpr double kBriefExp2[9] = {
    0x1.63d136366db24p-20, 0x1.00dc4a532fb8ep-16, 0x1.4308ac85aa947p-13,
    0x1.5d8745a728441p-10, 0x1.3b2ab7181b755p-7,  0x1.c6b08dd6fd234p-5,
    0x1.ebfbdff823cedp-3,  0x1.62e42fef84cf0p-1,  1.0};
KV_INLINE double exp2_brief(double x) {
  const double n = round_even(x);
  const double f = x - n;
  double p = kBriefExp2[0];
  p = about_fma(p, f, kBriefExp2[1]);
  p = about_fma(p, f, kBriefExp2[2]);
  p = about_fma(p, f, kBriefExp2[3]);
  p = about_fma(p, f, kBriefExp2[4]);
  p = about_fma(p, f, kBriefExp2[5]);
  p = about_fma(p, f, kBriefExp2[6]);
  p = about_fma(p, f, kBriefExp2[7]);
  p = about_fma(p, f, kBriefExp2[8]);
  return p * power_of_two(n);
}

/// log2(x) of a positive, finite, normal double: 2 artanh(s) / ln 2 with s = (m - 1) / (m + 1) and
/// m in [sqrt(1/2), sqrt(2)), series in s^2 <= 0.0295.
KV_INLINE double log2_double(double x) {
  const uint64_t u = bits_of(x);
  const uint64_t shifted = u - 0x3fe6a09e667f3bcd;  // sqrt(1/2)
  const double e = double(int32_t(int64_t(shifted) >> 52));
  const double m = double_of(u - (shifted & 0xfff0000000000000));
  const double s = (m - 1.0) / (m + 1.0);
  const double t = s * s;
  double p = 1.0 / 25.0;
  p = p * t + 1.0 / 23.0;
  p = p * t + 1.0 / 21.0;
  p = p * t + 1.0 / 19.0;
  p = p * t + 1.0 / 17.0;
  p = p * t + 1.0 / 15.0;
  p = p * t + 1.0 / 13.0;
  p = p * t + 1.0 / 11.0;
  p = p * t + 1.0 / 9.0;
  p = p * t + 1.0 / 7.0;
  p = p * t + 1.0 / 5.0;
  p = p * t + 1.0 / 3.0;
  p = p * t;
  // 2 / ln 2 in two parts: the leading product keeps its relative accuracy near 1.
  const double high = 2.8853900817779268, low = 4.0710547481862066e-17;
  return e + ((s + s * p) * high + s * low);
}

/// tanh(x) for |x| <= 20: below 1/4 the continued fraction x/(1+t/(3+t/(5+...))), t = x^2, which
/// converges without cancellation; above, (1 - q) / (1 + q) with q = e^-2|x|.
KV_INLINE double tanh_double(double x) {
  const double a = x < 0 ? -x : x;
  const double t = x * x;
  double d = 15.0;
  d = 13.0 + t / d;
  d = 11.0 + t / d;
  d = 9.0 + t / d;
  d = 7.0 + t / d;
  d = 5.0 + t / d;
  d = 3.0 + t / d;
  d = 1.0 + t / d;
  const double q = exp2_double(a * -2.8853900817779268);
  const double large = (1.0 - q) / (1.0 + q);
  return a < 0.25 ? x / d : (x < 0 ? -large : large);
}

/// sin and cos: |x| < 2^30 is reduced by pi/2 in three parts, exactly enough for a float's worth of
/// result. kShift 0 is sin, 1 is cos.
template <int kShift>
KV_INLINE double sine_double(double x) {
  const double n = round_even(x * 0.63661977236758134);
  const double r =
      ((x - n * 1.5707963109016418) - n * 1.5893254712295857e-08) - n * 6.1232339957367660e-17;
  const uint64_t quadrant = bits_of(n + 6755399441055744.0) + kShift;
  const double t = r * r;
  double s = -7.6471637318198165e-13;
  s = s * t + 1.6059043836821614e-10;
  s = s * t + -2.5052108385441719e-08;
  s = s * t + 2.7557319223985893e-06;
  s = s * t + -1.9841269841269841e-04;
  s = s * t + 8.3333333333333333e-03;
  s = s * t + -1.6666666666666667e-01;
  s = r + r * (t * s);
  double c = 4.7794773323873853e-14;
  c = c * t + -1.1470745597729725e-11;
  c = c * t + 2.0876756987868099e-09;
  c = c * t + -2.7557319223985891e-07;
  c = c * t + 2.4801587301587302e-05;
  c = c * t + -1.3888888888888889e-03;
  c = c * t + 4.1666666666666667e-02;
  c = c * t + -0.5;
  c = 1.0 + t * c;
  const double y = quadrant & 1 ? c : s;
  return quadrant & 2 ? -y : y;
}

}  // namespace kv::simt::KV_ISA
