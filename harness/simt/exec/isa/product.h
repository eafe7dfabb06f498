// Purpose: products of matrices in the fragments of mma, in double.
// Contract: fragments of m16n8kK: lane l = 4 * g + t. A register holds e = 32 /
// bits elements. Register r of A holds row g + 8 * (r & 1), columns 4e * (r /
// 2) + e * t onwards; register r of B holds column g, rows 4e * r + e * t
// onwards; C and D hold rows g and g + 8, columns 2t and 2t + 1. So a register
// of A or B, as an array over lanes, is an 8 x 4e matrix, row by row.
//
// The sum is c + products for k ascending, each product exact in double, each
// addition rounded in double: fused or not, in vectors of any width, the bits
// are the same.
#pragma once

#include "harness/simt/exec/isa/lanes.h"
#include "harness/simt/exec/math/tensor_core.h"

namespace kv::simt::KV_ISA {
namespace {

#ifdef __AVX512F__
constexpr int kWideLanes = 8;
#else
constexpr int kWideLanes = 4;
#endif
typedef double Wide __attribute__((vector_size(8 * kWideLanes)));
typedef float FourFloats __attribute__((vector_size(16)));
typedef float EightFloats __attribute__((vector_size(32)));
typedef double EightDoubles __attribute__((vector_size(64)));
typedef double FourDoubles __attribute__((vector_size(32)));

KV_INLINE Wide multiply_add(Wide a, Wide b, Wide c) {
#if defined(__AVX512F__)
  return Wide(_mm512_fmadd_pd(__m512d(a), __m512d(b), __m512d(c)));
#elif defined(__FMA__)
  return Wide(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(c)));
#else
  return a * b + c;
#endif
}

KV_INLINE Wide everywhere(double x) {
#ifdef __AVX512F__
  return Wide{x, x, x, x, x, x, x, x};
#else
  return Wide{x, x, x, x};
#endif
}

/// Four floats to doubles, and back with one rounding.
KV_INLINE void widen(FourFloats x, double *out) {
  const FourDoubles y = __builtin_convertvector(x, FourDoubles);
  __builtin_memcpy(out, &y, sizeof y);
}
KV_INLINE FourFloats narrow(const double *in) {
  FourDoubles x;
  __builtin_memcpy(&x, in, sizeof x);
  return __builtin_convertvector(x, FourFloats);
}

/// Transposes an 8 x 8 matrix of 16-bit elements: row r is words[4 r .. 4 r +
/// 3].
KV_INLINE void transpose(u32 *words) {
#ifdef __SSE2__
  __m128i r[8], t[8], u[8];
  for (int k = 0; k < 8; ++k) r[k] = _mm_load_si128(reinterpret_cast<__m128i *>(words) + k);
  for (int k = 0; k < 4; ++k) {
    t[2 * k] = _mm_unpacklo_epi16(r[2 * k], r[2 * k + 1]);
    t[2 * k + 1] = _mm_unpackhi_epi16(r[2 * k], r[2 * k + 1]);
  }
  for (int h = 0; h < 2; ++h) {
    u[h * 4] = _mm_unpacklo_epi32(t[h * 4], t[h * 4 + 2]);
    u[h * 4 + 1] = _mm_unpackhi_epi32(t[h * 4], t[h * 4 + 2]);
    u[h * 4 + 2] = _mm_unpacklo_epi32(t[h * 4 + 1], t[h * 4 + 3]);
    u[h * 4 + 3] = _mm_unpackhi_epi32(t[h * 4 + 1], t[h * 4 + 3]);
  }
  for (int k = 0; k < 4; ++k) {
    _mm_store_si128(reinterpret_cast<__m128i *>(words) + 2 * k, _mm_unpacklo_epi64(u[k], u[4 + k]));
    _mm_store_si128(reinterpret_cast<__m128i *>(words) + 2 * k + 1,
                    _mm_unpackhi_epi64(u[k], u[4 + k]));
  }
#else
  u16 in[64], out[64];
  __builtin_memcpy(in, words, 128);
  for (int r = 0; r < 8; ++r) {
    for (int c = 0; c < 8; ++c) out[c * 8 + r] = in[r * 8 + c];
  }
  __builtin_memcpy(words, out, 128);
#endif
}

// Element types: `row` gives a row of 4e elements of a register, `columns` its
// 4e columns of 8.
template <class F>
struct SixteenBit {
  static constexpr int kPerRegister = 2;
  KV_INLINE static void row(const u32 *words, double *out) {
    alignas(32) float x[8];
    F::eight(words, x);
    EightFloats all;
    __builtin_memcpy(&all, x, sizeof all);
    const EightDoubles y = __builtin_convertvector(all, EightDoubles);
    __builtin_memcpy(out, &y, sizeof y);
  }
  KV_INLINE static void columns(const u32 *words, double (*out)[8]) {
    alignas(64) u32 t[32];
    __builtin_memcpy(t, words, 128);
    transpose(t);
    for (int k = 0; k < 8; ++k) row(t + 4 * k, out[k]);
  }
};
template <class F, int kPer>
struct OneByOne {
  static constexpr int kPerRegister = kPer;
  KV_INLINE static double at(const u32 *words, int k) {
    return double(F::value(words[k / kPer] >> (32 / kPer * (k % kPer))));
  }
  KV_INLINE static void row(const u32 *words, double *out) {
    for (int k = 0; k < 4 * kPer; ++k) out[k] = at(words, k);
  }
  KV_INLINE static void columns(const u32 *words, double (*out)[8]) {
    for (int g = 0; g < 8; ++g) {
      for (int k = 0; k < 4 * kPer; ++k) out[k][g] = at(words + 4 * g, k);
    }
  }
};

struct EightHalves {
  KV_INLINE static void eight(const u32 *words, float *out) {
#ifdef __F16C__
    _mm256_store_ps(out, _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i *>(words))));
#else
    for (int k = 0; k < 8; ++k) out[k] = half_value(words[k / 2] >> (16 * (k & 1)) & 0xffff);
#endif
  }
};
struct EightBfloats {
  KV_INLINE static void eight(const u32 *words, float *out) {
    for (int k = 0; k < 8; ++k) {
      out[k] = float_of(k & 1 ? words[k / 2] & 0xffff0000 : words[k / 2] << 16);
    }
  }
};
struct Tf32Value {
  KV_INLINE static float value(u32 x) { return float_of(x & 0xffffe000); }
};
struct E4m3Value {
  KV_INLINE static float value(u32 x) { return e4m3_value(x & 255); }
};
struct E5m2Value {
  KV_INLINE static float value(u32 x) { return half_value((x & 255) << 8); }
};
using Half = SixteenBit<EightHalves>;
using Bfloat = SixteenBit<EightBfloats>;
using Tf32 = OneByOne<Tf32Value, 1>;
using E4m3 = OneByOne<E4m3Value, 4>;
using E5m2 = OneByOne<E5m2Value, 4>;

/// A as 16 rows of K, B as K rows of 8.
template <class A, class B, int kK>
struct Operands {
  alignas(64) double a[16][kK];
  alignas(64) double b[kK][8];

  KV_INLINE void gather(Warp &w, const u16 *r) {
    constexpr int kSpan = 4 * A::kPerRegister;  // columns of one register
    constexpr int kBlocks = kK / kSpan;
    for (int k = 0; k < 2 * kBlocks; ++k) {
      const u32 *words = slot<u32>(w, r[k]);
      for (int g = 0; g < 8; ++g) A::row(words + 4 * g, &a[g + 8 * (k & 1)][kSpan * (k / 2)]);
    }
    for (int k = 0; k < kBlocks; ++k) B::columns(slot<u32>(w, r[2 * kBlocks + k]), b + kSpan * k);
  }
};

/// out = a * b + out, 16 x 8: some rows at a time stay in registers.
template <int kK>
KV_INLINE void multiply(const double (&a)[16][kK], const double (&b)[kK][8], double (&out)[16][8]) {
  constexpr int kParts = 8 / kWideLanes;
  constexpr int kRows = kParts == 1 ? 8 : 4;
  for (int m = 0; m < 16; m += kRows) {
    Wide sum[kRows][kParts];
    __builtin_memcpy(sum, out[m], sizeof sum);
#pragma GCC unroll 4
    for (int k = 0; k < kK; ++k) {
      Wide row[kParts];
      __builtin_memcpy(row, b[k], sizeof row);
#pragma GCC unroll 8
      for (int x = 0; x < kRows; ++x) {
        const Wide all = everywhere(a[m + x][k]);
#pragma GCC unroll 2
        for (int p = 0; p < kParts; ++p) sum[x][p] = multiply_add(all, row[p], sum[x][p]);
      }
    }
    __builtin_memcpy(out[m], sum, sizeof sum);
  }
}

/// C in f32 as 16 x 8 doubles.
KV_INLINE void load_floats(Warp &w, const u16 *c, double (&out)[16][8]) {
  for (int half = 0; half < 2; ++half) {
    const float *even = slot<float>(w, c[2 * half]);
    const float *odd = slot<float>(w, c[2 * half + 1]);
    for (int g = 0; g < 8; ++g) {
      FourFloats e, o;
      __builtin_memcpy(&e, even + 4 * g, sizeof e);
      __builtin_memcpy(&o, odd + 4 * g, sizeof o);
      widen(FourFloats{e[0], o[0], e[1], o[1]}, &out[g + 8 * half][0]);
      widen(FourFloats{e[2], o[2], e[3], o[3]}, &out[g + 8 * half][4]);
    }
  }
}

/// D: each sum rounded to f32, NaN in its canonical form.
KV_INLINE void store_floats(Warp &w, const u16 *d, const double (&out)[16][8]) {
  for (int half = 0; half < 2; ++half) {
    alignas(64) float even[32], odd[32];
    for (int g = 0; g < 8; ++g) {
      const FourFloats x = narrow(&out[g + 8 * half][0]), y = narrow(&out[g + 8 * half][4]);
      const FourFloats e = {x[0], x[2], y[0], y[2]}, o = {x[1], x[3], y[1], y[3]};
      __builtin_memcpy(even + 4 * g, &e, sizeof e);
      __builtin_memcpy(odd + 4 * g, &o, sizeof o);
    }
    for (int k = 0; k < 2; ++k) {
      alignas(64) u32 t[32];
      KV_LANES t[l] = canonical(k ? odd[l] : even[l]);
      blend(slot<u32>(w, d[2 * half + k]), t, w.write);
    }
  }
}

/// C in f16 as 16 x 8 doubles, and D: each sum rounded to f16.
KV_INLINE void load_halves(Warp &w, const u16 *c, double (&out)[16][8]) {
  for (int k = 0; k < 2; ++k) {
    const u32 *words = slot<u32>(w, c[k]);
    for (int g = 0; g < 8; ++g) Half::row(words + 4 * g, out[g + 8 * k]);
  }
}
KV_INLINE void store_halves(Warp &w, const u16 *d, const double (&out)[16][8]) {
  for (int k = 0; k < 2; ++k) {
    alignas(64) u32 t[32];
    for (int l = 0; l < 32; ++l) {
      const double *pair = &out[l / 4 + 8 * k][2 * (l & 3)];
      t[l] = double_to_half(pair[0], Round::kNearest) | double_to_half(pair[1], Round::kNearest)
                                                            << 16;
    }
    blend(slot<u32>(w, d[k]), t, w.write);
  }
}

}  // namespace
}  // namespace kv::simt::KV_ISA
