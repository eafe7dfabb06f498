// Conversions. PTX ISA 9.0 section 9.7.9.21 (cvt). Float to integer saturates; NaN gives 0, or the
// smallest signed value where source or destination has 64 bits. Narrow destinations keep their
// upper bits zero.
#include "harness/simt/exec/isa/lanes.h"

namespace kv::simt::KV_ISA {
namespace {

enum class Whole : u8 { kNearest, kZero, kDown, kUp };

KV_INLINE double to_integral(double x, Whole mode) {
  const double size = x < 0 ? -x : x;
  if (!(size < 4503599627370496.0)) return x;  // already integral, or NaN
  const double magic = 6755399441055744.0;
  const double nearest = (x + magic) - magic;
  double r = nearest;
  if (mode == Whole::kDown) r = nearest > x ? nearest - 1 : nearest;
  if (mode == Whole::kUp) r = nearest < x ? nearest + 1 : nearest;
  if (mode == Whole::kZero) {
    const double away =
        x < 0 ? (nearest < x ? nearest + 1 : nearest) : (nearest > x ? nearest - 1 : nearest);
    r = away;
  }
  return r == 0 ? double_of(bits_of(x) & 0x8000000000000000) : r;  // the zero keeps its sign
}

template <class I, Whole kMode>
KV_INLINE u64 to_integer(double x, bool wide) {
  constexpr int kBits = int(sizeof(I)) * 8;
  constexpr bool kSigned = I(-1) < I(0);
  if (!(x == x)) return wide || kBits == 64 ? u64(1) << (kBits - 1) : 0;
  const double r = to_integral(x, kMode);
  const double top = kSigned ? double(u64(1) << (kBits - 1)) : 2.0 * double(u64(1) << (kBits - 1));
  if (r >= top)
    return kSigned ? (u64(1) << (kBits - 1)) - 1
                   : (kBits == 64 ? ~u64(0) : (u64(1) << (kBits & 63)) - 1);
  if (kSigned) {
    if (r < -top) return (u64(1) << (kBits - 1));
    return u64(s64(r)) & (kBits == 64 ? ~u64(0) : (u64(1) << (kBits & 63)) - 1);
  }
  if (r <= 0) return 0;
  return r >= 9223372036854775808.0 ? u64(s64(r - 9223372036854775808.0)) | u64(1) << 63
                                    : u64(s64(r));
}
/// 32-bit results, the common case, in a form that vectorises.
template <Whole kMode, bool kFtz>
constexpr auto kToS32 = [](u32 a) {
  const double x = float_of(kFtz ? flush(a) : a);
  return u32(to_integer<s32, kMode>(x, false));
};
template <class I, Whole kMode, bool kFtz>
constexpr auto kFromF32 =
    [](u32 a) { return to_integer<I, kMode>(double(float_of(kFtz ? flush(a) : a)), false); };
template <class I, Whole kMode>
constexpr auto kFromF64 = [](double a) { return to_integer<I, kMode>(a, true); };
template <class I, Whole kMode>
constexpr auto kFromF16 =
    [](u32 a) { return to_integer<I, kMode>(double(half_value(a & 0xffff)), false); };
template <class I, Whole kMode>
constexpr auto kFromBf16 =
    [](u32 a) { return to_integer<I, kMode>(double(bfloat_value(a & 0xffff)), false); };

/// An integer of up to 64 bits, rounded to odd into a double: enough for any narrower float.
KV_INLINE double odd_double(u64 magnitude, bool negative) {
  const int lead = magnitude ? __builtin_clzll(magnitude) : 0;
  u64 m = magnitude;
  if (lead < 11) {
    const u64 lost = m & ((u64(1) << (11 - lead)) - 1);
    m = (m & ~((u64(1) << (11 - lead)) - 1)) | (lost ? u64(1) << (11 - lead) : 0);
  }
  const double x = double(u32(m >> 32)) * 4294967296.0 + double(u32(m));
  return negative ? -x : x;
}
template <class I>
KV_INLINE double odd_of(u64 a) {
  const I x = I(a);
  const bool negative = x < I(0);
  return odd_double(negative ? u64(0) - u64(s64(x)) : u64(x), negative);
}
template <class I, Round kMode>
constexpr auto kToF32 = [](auto a) {
  if (sizeof(I) <= 4) return bits_of(round_to_float(double(I(a)), kMode));
  return bits_of(round_to_float(odd_of<I>(u64(a)), kMode));
};
template <class I>
constexpr auto kToF32Near = [](auto a) { return bits_of(float(I(a))); };
template <class I>
constexpr auto kToF64 = [](auto a) { return bits_of(double(I(a))); };
template <class I>
constexpr auto kToF16 = [](auto a) { return double_to_half(odd_of<I>(u64(a)), Round::kNearest); };
template <class I>
constexpr auto kToBf16 =
    [](auto a) { return double_to_bfloat(odd_of<I>(u64(a)), Round::kNearest); };

template <bool kFtz, bool kSat>
KV_INLINE u32 finish(u32 u) {
  const u32 x = float_of(u) == float_of(u) ? (kFtz ? flush(u) : u) : kNanBits;
  return kSat ? saturate(x) : x;
}
template <Whole kMode, bool kFtz, bool kSat>
constexpr auto kIntegral = [](u32 a) {
  const float x = float_of(kFtz ? flush(a) : a);
  return finish<kFtz, kSat>(bits_of(float(to_integral(double(x), kMode))));
};
template <bool kFtz, bool kSat>
constexpr auto kSameF32 = [](u32 a) { return finish<kFtz, kSat>(kFtz ? flush(a) : a); };

template <class D>
constexpr auto kCut = [](auto a) { return u64(D(a)); };
/// Sign extension of I into a register of D.
template <class D, class I>
constexpr auto kExtend = [](auto a) { return D(s64(I(a))); };
/// .sat between integers.
template <class D, class S>
constexpr auto kClamp = [](auto a) {
  const S x = S(a);
  const __int128 v = x, low = D(-1) < D(0) ? -((__int128)1 << (sizeof(D) * 8 - 1)) : 0;
  const __int128 high = ((__int128)1 << (sizeof(D) * 8 - (D(-1) < D(0)))) - 1;
  const __int128 r = v < low ? low : v > high ? high : v;
  return u64(r) & (sizeof(D) == 8 ? ~u64(0) : (u64(1) << (sizeof(D) * 8 % 64)) - 1);
};

template <Round kMode, bool kRelu>
KV_INLINE u32 to_half(u32 a) {
  if (kRelu && a >> 31 && (a & 0x7fffffff) <= 0x7f800000) return 0;
  if (kMode == Round::kNearest) return float_to_half(a);
  return double_to_half(double(float_of(a)), kMode);
}
template <Round kMode, bool kRelu>
KV_INLINE u32 to_bfloat(u32 a) {
  if (kRelu && a >> 31 && (a & 0x7fffffff) <= 0x7f800000) return 0;
  if (kMode == Round::kNearest) return float_to_bfloat(a);
  return double_to_bfloat(double(float_of(a)), kMode);
}
template <Round kMode, bool kRelu>
constexpr auto kToHalf = [](u32 a) { return to_half<kMode, kRelu>(a); };
template <Round kMode, bool kRelu>
constexpr auto kToBfloat = [](u32 a) { return to_bfloat<kMode, kRelu>(a); };
template <Round kMode, bool kRelu>
constexpr auto kToHalf2 =
    [](u32 a, u32 b) { return to_half<kMode, kRelu>(a) << 16 | to_half<kMode, kRelu>(b); };
template <Round kMode, bool kRelu>
constexpr auto kToBfloat2 =
    [](u32 a, u32 b) { return to_bfloat<kMode, kRelu>(a) << 16 | to_bfloat<kMode, kRelu>(b); };
/// cvt.rn.f16x2.f32. A NaN with a fraction of all ones stays one.
#if defined(__AVX512BW__)
KV_INLINE Words to_half_words(Words a) {
  const __m512 x = _mm512_castsi512_ps(a), nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fffffff));
  const __m512 y = _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
  return _mm512_cvtepu16_epi32(_mm512_cvtps_ph(y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#elif defined(__AVX2__)
KV_INLINE Words to_half_words(Words a) {
  const __m256 x = _mm256_castsi256_ps(a), nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  const __m256 y = _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_cvtepu16_epi32(_mm256_cvtps_ph(y, _MM_FROUND_TO_NEAREST_INT));
}
#endif
#ifdef __AVX2__
KV_INLINE Words to_half_pairs(Words a, Words b) {
  typedef u32 Each __attribute__((vector_size(sizeof(Words))));
  return Words(Each(to_half_words(a)) << 16 | Each(to_half_words(b)));
}
constexpr Handler kToHalfPair = map_words2<to_half_pairs>;
#else
constexpr Handler kToHalfPair = binary32<kToHalf2<Round::kNearest, false>>;
#endif
KV_INLINE u32 saturated_half(u32 h) {
  return (h & 0x7fff) > 0x7c00 || h & 0x8000 ? 0 : h > 0x3c00 ? 0x3c00 : h;
}

/// 8-bit floats: OCP E4M3 (no infinity, NaN 0x7f) and E5M2, always saturating to finite.
KV_INLINE u32 to_e4m3(u32 a, bool relu) {
  const double x = float_of(a);
  if (!(x == x)) return 0x7f;
  if (relu && a >> 31) return 0;
  u64 m = round_to_format(x, 3, -6, Round::kNearest);
  if (m > 0x7e) m = 0x7e;
  return u32(m) | (a >> 31) << 7;
}
KV_INLINE u32 to_e5m2(u32 a, bool relu) {
  const double x = float_of(a);
  if (!(x == x)) return 0x7f;
  if (relu && a >> 31) return 0;
  u64 m = round_to_format(x, 2, -14, Round::kNearest);
  if (m > 0x7b) m = 0x7b;
  return u32(m) | (a >> 31) << 7;
}
KV_INLINE u32 e4m3_to_half(u32 b) {
  const u32 m = b & 0x7f, sign = (b & 0x80) << 8;
  if (m == 0x7f) return 0x7fff;
  const u32 exponent = m >> 3, fraction = m & 7;
  if (exponent) return sign | (m + (8 << 3)) << 7;
  // fraction * 2^-9, exact in f16
  return sign | float_to_half(bits_of(float(fraction) * 0x1p-9f));
}
KV_INLINE u32 e5m2_to_half(u32 b) {
  const u32 h = b << 8 & 0xff00;
  return (h & 0x7fff) > 0x7c00 ? 0x7fff : h;
}
template <bool kRelu>
constexpr auto kToE4m3x2 = [](u32 a, u32 b) { return to_e4m3(a, kRelu) << 8 | to_e4m3(b, kRelu); };
template <bool kRelu>
constexpr auto kToE5m2x2 = [](u32 a, u32 b) { return to_e5m2(a, kRelu) << 8 | to_e5m2(b, kRelu); };

/// tf32: 10 bits of fraction, the rest zero. rna rounds ties away.
constexpr auto kToTf32Rna = [](u32 a) {
  return (a & 0x7fffffff) >= 0x7f800000 ? (float_of(a) == float_of(a) ? a : kNanBits)
                                        : (a + 0x1000) & 0xffffe000;
};
constexpr auto kToTf32Rn = [](u32 a) {
  return (a & 0x7fffffff) >= 0x7f800000 ? (float_of(a) == float_of(a) ? a : kNanBits)
                                        : (a + 0xfff + (a >> 13 & 1)) & 0xffffe000;
};

#define KV_TO_INTEGERS(mode, whole)                                                               \
  {"cvt." mode ".s32.f32", "2=2", Taint::kAll, unary32<kToS32<whole, false>>},                    \
      {"cvt." mode ".ftz.s32.f32", "2=2", Taint::kAll, unary32<kToS32<whole, true>>},             \
      {"cvt." mode ".u32.f32", "2=2", Taint::kAll, map1<kFromF32<u32, whole, false>, u32, u32>},  \
      {"cvt." mode ".ftz.u32.f32", "2=2", Taint::kAll,                                            \
       map1<kFromF32<u32, whole, true>, u32, u32>},                                               \
      {"cvt." mode ".s64.f32", "4=2", Taint::kAll, map1<kFromF32<s64, whole, false>, u64, u32>},  \
      {"cvt." mode ".s32.f64", "2=4", Taint::kAll, map1<kFromF64<s32, whole>, u32, double>},      \
      {"cvt." mode ".u32.f64", "2=4", Taint::kAll, map1<kFromF64<u32, whole>, u32, double>},      \
      {"cvt." mode ".s64.f64", "4=4", Taint::kAll, map1<kFromF64<s64, whole>, u64, double>},      \
      {"cvt." mode ".u64.f64", "4=4", Taint::kAll, map1<kFromF64<u64, whole>, u64, double>},      \
      {"cvt." mode ".s32.f16", "2=2", Taint::kAll, map1<kFromF16<s32, whole>, u32, u32>},         \
      {"cvt." mode ".u32.f16", "2=2", Taint::kAll, map1<kFromF16<u32, whole>, u32, u32>},         \
      {"cvt." mode ".s16.f16", "2=2", Taint::kAll, map1<kFromF16<s16, whole>, u32, u32>},         \
      {"cvt." mode ".u16.f16", "2=2", Taint::kAll, map1<kFromF16<u16, whole>, u32, u32>},         \
      {"cvt." mode ".s32.bf16", "2=2", Taint::kAll, map1<kFromBf16<s32, whole>, u32, u32>},       \
      {"cvt." mode ".u32.bf16", "2=2", Taint::kAll, map1<kFromBf16<u32, whole>, u32, u32>},       \
      {"cvt." mode ".f32.f32", "2=2", Taint::kAll, unary32<kIntegral<whole, false, false>>},      \
      {"cvt." mode ".ftz.f32.f32", "2=2", Taint::kAll, unary32<kIntegral<whole, true, false>>},   \
      {"cvt." mode ".sat.f32.f32", "2=2", Taint::kAll, unary32<kIntegral<whole, false, true>>},   \
      {"cvt." mode ".f64.f64", "4=4", Taint::kAll,                                                \
       map1<[](double a) { return canonical(to_integral(a, whole)); }, u64, double>},             \
  {                                                                                               \
    "cvt." mode ".f16.f16", "2=2", Taint::kAll, unary32<[](u32 a) {                               \
      return double_to_half(to_integral(double(half_value(a & 0xffff)), whole), Round::kNearest); \
    }>                                                                                            \
  }

#define KV_FROM_INTEGERS(mode, round)                                                          \
  {"cvt." mode ".f32.s32", "2=2", Taint::kAll, unary32<kToF32<s32, round>>},                   \
      {"cvt." mode ".f32.u32", "2=2", Taint::kAll, unary32<kToF32<u32, round>>},               \
      {"cvt." mode ".f32.s64", "2=4", Taint::kAll, map1<kToF32<s64, round>, u32, u64>},        \
      {"cvt." mode ".f32.u64", "2=4", Taint::kAll, map1<kToF32<u64, round>, u32, u64>},        \
      {"cvt." mode ".f32.f64", "2=4", Taint::kAll,                                             \
       map1<[](double a) { return canonical(round_to_float(a, round)); }, u32, double>},       \
      {"cvt." mode ".f16.f32", "2=2", Taint::kAll, unary32<kToHalf<round, false>>},            \
      {"cvt." mode ".bf16.f32", "2=2", Taint::kAll, unary32<kToBfloat<round, false>>},         \
      {"cvt." mode ".f16x2.f32", "2=22", Taint::kAll, binary32<kToHalf2<round, false>>},       \
      {"cvt." mode ".bf16x2.f32", "2=22", Taint::kAll, binary32<kToBfloat2<round, false>>},    \
      {"cvt." mode ".relu.f16.f32", "2=2", Taint::kAll, unary32<kToHalf<round, true>>},        \
      {"cvt." mode ".relu.bf16.f32", "2=2", Taint::kAll, unary32<kToBfloat<round, true>>},     \
      {"cvt." mode ".relu.f16x2.f32", "2=22", Taint::kAll, binary32<kToHalf2<round, true>>}, { \
    "cvt." mode ".relu.bf16x2.f32", "2=22", Taint::kAll, binary32<kToBfloat2<round, true>>     \
  }

constexpr FormRow kRows[] = {
    // Between integers: cut, or extend the sign or zeros.
    {"cvt.{u32,s32}.{u32,s32}", "2=2", Taint::kCopy, unary32<[](u32 a) { return a; }>},
    {"cvt.{u64,s64}.{u64,s64}", "4=4", Taint::kCopy, unary64<[](u64 a) { return a; }>, 64},
    {"cvt.{u16,s16}.{u16,s16,u32,s32}", "2=2", Taint::kCopy, unary32<kCut<u16>>, 16},
    {"cvt.u8.{u8,s8,u16,s16,u32,s32}", "2=2", Taint::kCopy, unary32<kCut<u8>>, 8},
    {"cvt.s8.{u8,s8,u16,s16,u32,s32}", "2=2", Taint::kSignCopy, unary32<kExtend<u16, s8>>, 8},
    {"cvt.{u16,s16}.{u64,s64}", "2=4", Taint::kCopy, map1<kCut<u16>, u32, u64>, 16},
    {"cvt.u8.{u64,s64}", "2=4", Taint::kCopy, map1<kCut<u8>, u32, u64>, 8},
    {"cvt.{u32,s32}.{u64,s64}", "2=4", Taint::kCopy, map1<kCut<u32>, u32, u64>, 32},
    {"cvt.{u32,s32}.u16", "2=2", Taint::kCopy, unary32<kCut<u16>>, 16},
    {"cvt.{u16,s16,u32,s32}.u8", "2=2", Taint::kCopy, unary32<kCut<u8>>, 8},
    {"cvt.{u32,s32}.s16", "2=2", Taint::kSignCopy, unary32<kExtend<u32, s16>>, 16},
    {"cvt.{u32,s32}.s8", "2=2", Taint::kSignCopy, unary32<kExtend<u32, s8>>, 8},
    {"cvt.{u16,s16}.s8", "2=2", Taint::kSignCopy, unary32<kExtend<u16, s8>>, 8},
    {"cvt.{u64,s64}.u32", "4=2", Taint::kCopy, map1<kCut<u32>, u64, u32>, 32},
    {"cvt.{u64,s64}.u16", "4=2", Taint::kCopy, map1<kCut<u16>, u64, u32>, 16},
    {"cvt.{u64,s64}.u8", "4=2", Taint::kCopy, map1<kCut<u8>, u64, u32>, 8},
    {"cvt.{u64,s64}.s32", "4=2", Taint::kSignCopy, map1<kExtend<u64, s32>, u64, u32>, 32},
    {"cvt.{u64,s64}.s16", "4=2", Taint::kSignCopy, map1<kExtend<u64, s16>, u64, u32>, 16},
    {"cvt.{u64,s64}.s8", "4=2", Taint::kSignCopy, map1<kExtend<u64, s8>, u64, u32>, 8},
    {"cvt.sat.u8.s32", "2=2", Taint::kAll, map1<kClamp<u8, s32>, u32, u32>},
    {"cvt.sat.u8.s16", "2=2", Taint::kAll, map1<kClamp<u8, s16>, u32, u32>},
    {"cvt.sat.u8.u32", "2=2", Taint::kAll, map1<kClamp<u8, u32>, u32, u32>},
    {"cvt.sat.s16.s32", "2=2", Taint::kAll, map1<kClamp<s16, s32>, u32, u32>},
    {"cvt.sat.u16.s32", "2=2", Taint::kAll, map1<kClamp<u16, s32>, u32, u32>},
    {"cvt.sat.u32.s32", "2=2", Taint::kAll, map1<kClamp<u32, s32>, u32, u32>},
    {"cvt.sat.s32.u32", "2=2", Taint::kAll, map1<kClamp<s32, u32>, u32, u32>},
    {"cvt.sat.u32.s64", "2=4", Taint::kAll, map1<kClamp<u32, s64>, u32, u64>},
    {"cvt.sat.s32.s64", "2=4", Taint::kAll, map1<kClamp<s32, s64>, u32, u64>},
    {"cvt.sat.u64.s64", "4=4", Taint::kAll, map1<kClamp<u64, s64>, u64, u64>},
    {"cvt.pack.sat.u16.s32", "2=22", Taint::kAll, binary32<[](u32 a, u32 b) {
       return u32(kClamp<u16, s32>(a)) << 16 | u32(kClamp<u16, s32>(b));
     }>},
    {"cvt.pack.sat.s16.s32", "2=22", Taint::kAll, binary32<[](u32 a, u32 b) {
       return u32(kClamp<s16, s32>(a)) << 16 | u32(kClamp<s16, s32>(b));
     }>},
    {"cvt.pack.sat.u8.s32.b32", "2=222", Taint::kAll, ternary32<[](u32 a, u32 b, u32 c) {
       return c << 16 | u32(kClamp<u8, s32>(a)) << 8 | u32(kClamp<u8, s32>(b));
     }>},
    {"cvt.pack.sat.s8.s32.b32", "2=222", Taint::kAll, ternary32<[](u32 a, u32 b, u32 c) {
       return c << 16 | u32(kClamp<s8, s32>(a)) << 8 | u32(kClamp<s8, s32>(b));
     }>},

    // Integers to floats.
    {"cvt.rn.f32.s32", "2=2", Taint::kAll, unary32<kToF32Near<s32>>},
    {"cvt.rn.f32.u32", "2=2", Taint::kAll, unary32<kToF32Near<u32>>},
    {"cvt.rn.f32.s16", "2=2", Taint::kAll, unary32<kToF32Near<s16>>},
    {"cvt.rn.f32.u16", "2=2", Taint::kAll, unary32<kToF32Near<u16>>},
    {"cvt.rn.f32.s8", "2=2", Taint::kAll, unary32<kToF32Near<s8>>},
    {"cvt.rn.f32.u8", "2=2", Taint::kAll, unary32<kToF32Near<u8>>},
    {"cvt.rn.f32.s64", "2=4", Taint::kAll, map1<kToF32Near<s64>, u32, u64>},
    {"cvt.rn.f32.u64", "2=4", Taint::kAll, map1<kToF32<u64, Round::kNearest>, u32, u64>},
    {"cvt.rn.f64.s32", "4=2", Taint::kAll, map1<kToF64<s32>, u64, u32>},
    {"cvt.rn.f64.u32", "4=2", Taint::kAll, map1<kToF64<u32>, u64, u32>},
    {"cvt.rn.f64.s64", "4=4", Taint::kAll, map1<kToF64<s64>, u64, u64>},
    {"cvt.rn.f64.u64", "4=4", Taint::kAll, map1<kToF64<u64>, u64, u64>},
    {"cvt.rn.f16.s32", "2=2", Taint::kAll, unary32<kToF16<s32>>},
    {"cvt.rn.f16.u32", "2=2", Taint::kAll, unary32<kToF16<u32>>},
    {"cvt.rn.f16.s16", "2=2", Taint::kAll, unary32<kToF16<s16>>},
    {"cvt.rn.f16.u16", "2=2", Taint::kAll, unary32<kToF16<u16>>},
    {"cvt.rn.f16.s8", "2=2", Taint::kAll, unary32<kToF16<s8>>},
    {"cvt.rn.f16.u8", "2=2", Taint::kAll, unary32<kToF16<u8>>},
    {"cvt.rn.f16.s64", "2=4", Taint::kAll, map1<kToF16<s64>, u32, u64>},
    {"cvt.rn.bf16.s32", "2=2", Taint::kAll, unary32<kToBf16<s32>>},
    {"cvt.rn.bf16.u32", "2=2", Taint::kAll, unary32<kToBf16<u32>>},
    {"cvt.rn.bf16.s16", "2=2", Taint::kAll, unary32<kToBf16<s16>>},
    {"cvt.rn.bf16.s8", "2=2", Taint::kAll, unary32<kToBf16<s8>>},

    KV_FROM_INTEGERS("rz", Round::kZero),
    KV_FROM_INTEGERS("rm", Round::kDown),
    KV_FROM_INTEGERS("rp", Round::kUp),
    KV_TO_INTEGERS("rni", Whole::kNearest),
    KV_TO_INTEGERS("rzi", Whole::kZero),
    KV_TO_INTEGERS("rmi", Whole::kDown),
    KV_TO_INTEGERS("rpi", Whole::kUp),

    // Between floats.
    {"cvt.f32.f16", "2=2", Taint::kAll, unary32<[](u32 a) { return half_to_float(a & 0xffff); }>},
    {"cvt.ftz.f32.f16", "2=2", Taint::kAll,
     unary32<[](u32 a) { return half_to_float(a & 0xffff); }>},
    {"cvt.sat.f32.f16", "2=2", Taint::kAll,
     unary32<[](u32 a) { return saturate(half_to_float(a & 0xffff)); }>},
    {"cvt.f32.bf16", "2=2", Taint::kAll,
     unary32<([](u32 a) { return (a & 0x7fff) > 0x7f80 ? kNanBits : a << 16; })>},
    {"cvt.f64.f16", "4=2", Taint::kAll,
     map1<[](u32 a) { return canonical(double(half_value(a & 0xffff))); }, u64, u32>},
    {"cvt.f64.f32", "4=2", Taint::kAll,
     map1<[](u32 a) { return canonical(double(float_of(a))); }, u64, u32>},
    {"cvt.ftz.f64.f32", "4=2", Taint::kAll,
     map1<[](u32 a) { return canonical(double(float_of(flush(a)))); }, u64, u32>},
    {"cvt.rn.f32.f64", "2=4", Taint::kAll,
     map1<[](double a) { return canonical(float(a)); }, u32, double>},
    {"cvt.rn.ftz.f32.f64", "2=4", Taint::kAll,
     map1<[](double a) { return flush(canonical(float(a))); }, u32, double>},
    {"cvt.rn.f16.f64", "2=4", Taint::kAll,
     map1<[](double a) { return double_to_half(a, Round::kNearest); }, u32, double>},
    {"cvt.f32.f32", "2=2", Taint::kAll, unary32<kSameF32<false, false>>},
    {"cvt.ftz.f32.f32", "2=2", Taint::kAll, unary32<kSameF32<true, false>>},
    {"cvt.sat.f32.f32", "2=2", Taint::kAll, unary32<kSameF32<false, true>>},
    {"cvt.ftz.sat.f32.f32", "2=2", Taint::kAll, unary32<kSameF32<true, true>>},
    {"cvt.rn{.ftz,}.f16.f32", "2=2", Taint::kAll, unary32<kToHalf<Round::kNearest, false>>},
    {"cvt.rn.bf16.f32", "2=2", Taint::kAll, unary32<kToBfloat<Round::kNearest, false>>},
    {"cvt.rn.f16x2.f32", "2=22", Taint::kAll, kToHalfPair},
    {"cvt.rn.bf16x2.f32", "2=22", Taint::kAll, binary32<kToBfloat2<Round::kNearest, false>>},
    {"cvt.rn.relu.f16.f32", "2=2", Taint::kAll, unary32<kToHalf<Round::kNearest, true>>},
    {"cvt.rn.relu.bf16.f32", "2=2", Taint::kAll, unary32<kToBfloat<Round::kNearest, true>>},
    {"cvt.rn.relu.f16x2.f32", "2=22", Taint::kAll, binary32<kToHalf2<Round::kNearest, true>>},
    {"cvt.rn.relu.bf16x2.f32", "2=22", Taint::kAll, binary32<kToBfloat2<Round::kNearest, true>>},
    {"cvt.rn.sat.f16.f32", "2=2", Taint::kAll,
     unary32<[](u32 a) { return saturated_half(float_to_half(a)); }>},
    {"cvt.rn.bf16.f16", "2=2", Taint::kAll,
     unary32<[](u32 a) { return float_to_bfloat(half_to_float(a & 0xffff)); }>},
    {"cvt.rn.f16.bf16", "2=2", Taint::kAll, unary32<[](u32 a) { return float_to_half(a << 16); }>},
    {"cvt.rna.tf32.f32", "2=2", Taint::kAll, unary32<kToTf32Rna>},
    {"cvt.rn.tf32.f32", "2=2", Taint::kAll, unary32<kToTf32Rn>},
    {"cvt.rn.satfinite.e4m3x2.f32", "2=22", Taint::kAll, binary32<kToE4m3x2<false>>},
    {"cvt.rn.satfinite.relu.e4m3x2.f32", "2=22", Taint::kAll, binary32<kToE4m3x2<true>>},
    {"cvt.rn.satfinite.e5m2x2.f32", "2=22", Taint::kAll, binary32<kToE5m2x2<false>>},
    {"cvt.rn.satfinite.relu.e5m2x2.f32", "2=22", Taint::kAll, binary32<kToE5m2x2<true>>},
    {"cvt.rn.satfinite.e4m3x2.f16x2", "2=2", Taint::kAll, unary32<[](u32 a) {
       return to_e4m3(half_to_float(a >> 16), false) << 8 |
              to_e4m3(half_to_float(a & 0xffff), false);
     }>},
    {"cvt.rn.satfinite.e5m2x2.f16x2", "2=2", Taint::kAll, unary32<[](u32 a) {
       return to_e5m2(half_to_float(a >> 16), false) << 8 |
              to_e5m2(half_to_float(a & 0xffff), false);
     }>},
    {"cvt.rn.f16x2.e4m3x2", "2=2", Taint::kAll,
     unary32<[](u32 a) { return e4m3_to_half(a & 255) | e4m3_to_half(a >> 8 & 255) << 16; }>},
    {"cvt.rn.f16x2.e5m2x2", "2=2", Taint::kAll,
     unary32<[](u32 a) { return e5m2_to_half(a & 255) | e5m2_to_half(a >> 8 & 255) << 16; }>},
};

}  // namespace

FormRows convert_forms() { return rows_of(kRows); }

}  // namespace kv::simt::KV_ISA
