// Purpose: products of matrices in the fragments of mma, in double.
// Contract: fragments of m16n8kK: lane l = 4 * g + t. A register holds e = 32 / bits elements.
// Register r of A holds row g + 8 * (r & 1), columns 4e * (r / 2) + e * t onwards; register r of B
// holds column g, rows 4e * r + e * t onwards; C and D hold rows g and g + 8, columns 2t, 2t + 1.
// So a register of A or B, as an array over lanes, is an 8 x 4e matrix, row by row.
// The sum is c + products for k ascending, each product exact in double, each addition rounded in
// double: fused or not, in vectors of any width, the bits are the same.
#pragma once

#include <type_traits>

#include "harness/simt/exec/isa/transpose.h"
#include "harness/simt/exec/math/tensor_core.h"

namespace kv::simt::KV_ISA {
namespace {

typedef double Wide __attribute__((vector_size(32)));
typedef float FourFloats __attribute__((vector_size(16)));
typedef u32 FourWords __attribute__((vector_size(16)));
typedef float EightFloats __attribute__((vector_size(32)));
typedef double EightDoubles __attribute__((vector_size(64)));

KV_INLINE Wide multiply_add(Wide a, Wide b, Wide c) {
#ifdef __FMA__
  return Wide(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(c)));
#else
  return a * b + c;
#endif
}

// Element types: `row` gives a row of 4e elements of a register, `columns` its 4e columns of 8.
template <class F>
struct SixteenBit {
  static constexpr int kPerRegister = 2;
  static constexpr u32 kKind = F::kKind;
  KV_INLINE static void row(const u32 *words, double *out) {
    const EightFloats x = F::eight(words);
#ifdef __AVX512BW__
    _mm512_storeu_pd(out, _mm512_cvtps_pd(__m256(x)));
    return;
#endif
    const EightDoubles y = __builtin_convertvector(x, EightDoubles);
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
  static constexpr u32 kKind = F::kKind;
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
  static constexpr u32 kKind = 1;
  KV_INLINE static EightFloats eight(const u32 *words) {
#ifdef __F16C__
    return EightFloats(_mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i *>(words))));
#else
    EightFloats x;
    for (int k = 0; k < 8; ++k) x[k] = half_value(words[k / 2] >> (16 * (k & 1)) & 0xffff);
    return x;
#endif
  }
};
struct EightBfloats {
  static constexpr u32 kKind = 2;
  KV_INLINE static EightFloats eight(const u32 *words) {
    EightFloats x;
    for (int k = 0; k < 8; ++k) {
      x[k] = float_of(k & 1 ? words[k / 2] & 0xffff0000 : words[k / 2] << 16);
    }
    return x;
  }
};
struct Tf32Value {
  static constexpr u32 kKind = 3;
  KV_INLINE static float value(u32 x) { return float_of(x & 0xffffe000); }
};
struct E4m3Value {
  static constexpr u32 kKind = 4;
  KV_INLINE static float value(u32 x) { return e4m3_value(x & 255); }
};
struct E5m2Value {
  static constexpr u32 kKind = 5;
  KV_INLINE static float value(u32 x) { return half_value((x & 255) << 8); }
};
using Half = SixteenBit<EightHalves>;
using Bfloat = SixteenBit<EightBfloats>;
using Tf32 = OneByOne<Tf32Value, 1>;
using E4m3 = OneByOne<E4m3Value, 4>;
using E5m2 = OneByOne<E5m2Value, 4>;

/// Bit g of 7: rows g and g + 1 of a register differ. A row is four lanes.
struct RowsDiffer {
#if defined(__AVX512BW__)
  u32 lanes = 0;  // those that differ from the lane four further
  KV_INLINE void add(const u32 *words) {
    const Words x = load_words(words), y = load_words(words + 16);
    lanes |= _mm512_cmpneq_epi32_mask(x, _mm512_alignr_epi32(y, x, 4)) |
             u32(_mm512_mask_cmpneq_epi32_mask(0xfff, y, _mm512_alignr_epi32(y, y, 4))) << 16;
  }
  KV_INLINE u32 mask() const {
    u32 rows = 0;
    for (int g = 0; g < 7; ++g) rows |= u32((lanes >> (4 * g) & 15) != 0) << g;
    return rows;
  }
#elif defined(__AVX2__)
  __m256i difference[4] = {};
  KV_INLINE void add(const u32 *words) {
    const auto at = [&](int k) __attribute__((always_inline)) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(words + k));
    };
    for (int k = 0; k < 4; ++k) {
      const __m256i next = k < 3 ? at(8 * k + 4) : _mm256_permute4x64_epi64(at(24), 0xee);
      difference[k] = _mm256_or_si256(difference[k], _mm256_xor_si256(at(8 * k), next));
    }
  }
  KV_INLINE u32 mask() const {
    u32 same = 0;
    for (int k = 0; k < 4; ++k) {
      const __m256i zero = _mm256_cmpeq_epi32(difference[k], _mm256_setzero_si256());
      const u32 lanes = u32(_mm256_movemask_ps(_mm256_castsi256_ps(zero)));
      same |= u32((lanes & 15) == 15) << (2 * k) | u32(lanes >> 4 == 15) << (2 * k + 1);
    }
    return ~same & 127;
  }
#else
  u32 different = 0;
  KV_INLINE void add(const u32 *words) {
    for (int g = 0; g < 7; ++g) {
      different |= u32(__builtin_memcmp(words + 4 * g, words + 4 * g + 4, 16) != 0) << g;
    }
  }
  KV_INLINE u32 mask() const { return different; }
#endif
};
/// How many rows at the front of eight are enough: those behind them equal the last of them.
KV_INLINE int distinct_rows(u32 different) { return different ? 33 - __builtin_clz(different) : 1; }

KV_INLINE bool same_words(const u32 *x, const u32 *y) {
  u32 different = 0;
  for (int l = 0; l < 32; ++l) different |= x[l] ^ y[l];
  return different == 0;
}

template <class A, int kK>
[[gnu::noinline]] static void fill_memo(Warp &w, const u16 *r) {
  constexpr int kSpan = 4 * A::kPerRegister;  // columns of one register
  MatrixMemo &memo = *w.launch->matrix_memo;
  memo.kind = A::kKind << 8 | u32(kK);
  double(*a)[kK] = reinterpret_cast<double(*)[kK]>(memo.values);
  RowsDiffer differ[2];
  for (int k = 0; k < 2 * kK / kSpan; ++k) {
    const u32 *words = slot<u32>(w, r[k]);
    __builtin_memcpy(memo.words[k], words, 128);
    differ[k & 1].add(words);
    for (int g = 0; g < 8; ++g) A::row(words + 4 * g, &a[g + 8 * (k & 1)][kSpan * (k / 2)]);
  }
  for (int half = 0; half < 2; ++half) memo.different[half] = differ[half].mask();
}

/// A as 16 rows of K, kept in the launch's memo from one product to the next: kernels multiply the
/// same rows by several columns in turn. Rows of padding are all the same and are multiplied once.
template <class A, int kK>
KV_INLINE MatrixMemo &rows_of_a(Warp &w, const u16 *r) {
  constexpr int kRegisters = kK / (2 * A::kPerRegister);
  MatrixMemo &memo = *w.launch->matrix_memo;
  bool known = memo.kind == (A::kKind << 8 | u32(kK));
#ifdef __AVX512BW__
  Words differ = _mm512_setzero_si512();
  for (int k = 0; k < 2 * kRegisters; ++k) {
    const u32 *const words = slot<u32>(w, r[k / 2]) + 16 * (k & 1);
    const u32 *const before = memo.words[k / 2] + 16 * (k & 1);
    differ = _mm512_ternarylogic_epi32(differ, load_words(words), load_words(before), 0xf6);
  }
  known &= _mm512_test_epi32_mask(differ, differ) == 0;
#else
  for (int k = 0; k < kRegisters && known; ++k)
    known = same_words(memo.words[k], slot<u32>(w, r[k]));
#endif
  if (!known) fill_memo<A, kK>(w, r);
  return memo;
}

#ifdef __F16C__
/// Halves of two registers as 16 rows of 8.
KV_INLINE void columns_of_halves(const u32 *first, const u32 *second, double (&b)[16][8]) {
  const auto half = [](const u32 *words, int k) __attribute__((always_inline)) {
    return _mm_load_si128(reinterpret_cast<const __m128i *>(words) + k);
  };
  const auto put = [](__m128i halves, double *to) __attribute__((always_inline)) {
    const __m256 x = _mm256_cvtph_ps(halves);
    _mm256_store_pd(to, _mm256_cvtps_pd(_mm256_castps256_ps128(x)));
    _mm256_store_pd(to + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
  };
  __m256i r[8];
  for (int k = 0; k < 8; ++k) r[k] = _mm256_set_m128i(half(second, k), half(first, k));
  transpose_two(r);
  for (int k = 0; k < 8; ++k) {
    put(_mm256_castsi256_si128(r[k]), b[k]);
    put(_mm256_extracti128_si256(r[k], 1), b[8 + k]);
  }
}
#endif

/// B as K rows of 8.
template <class B, int kK>
KV_INLINE void columns_of_b(Warp &w, const u16 *r, double (&b)[kK][8]) {
  constexpr int kSpan = 4 * B::kPerRegister;
#ifdef __F16C__
  if constexpr (std::is_same_v<B, Half> && kK == 16) {
    columns_of_halves(slot<u32>(w, r[0]), slot<u32>(w, r[1]), b);
    return;
  }
#endif
  for (int k = 0; k < kK / kSpan; ++k) B::columns(slot<u32>(w, r[k]), b + kSpan * k);
}

/// C and D in f32: two registers for each half of the rows, columns 2t and 2t + 1.
struct FloatSums {
  static constexpr int kRegisters = 4;
  const float *c[4];
  alignas(64) u32 d[4][32];

  KV_INLINE void load(int row, Wide *sum) const {
    FourFloats even, odd;
    __builtin_memcpy(&even, c[row / 8 * 2] + row % 8 * 4, sizeof even);
    __builtin_memcpy(&odd, c[row / 8 * 2 + 1] + row % 8 * 4, sizeof odd);
    sum[0] = __builtin_convertvector(__builtin_shufflevector(even, odd, 0, 4, 1, 5), Wide);
    sum[1] = __builtin_convertvector(__builtin_shufflevector(even, odd, 2, 6, 3, 7), Wide);
  }
  /// Each sum rounded; NaN gets its canonical form in finish().
  KV_INLINE void store(int row, const Wide *sum) {
    const FourFloats x = __builtin_convertvector(sum[0], FourFloats);
    const FourFloats y = __builtin_convertvector(sum[1], FourFloats);
    put(row, 0, __builtin_shufflevector(x, y, 0, 2, 4, 6));
    put(row, 1, __builtin_shufflevector(x, y, 1, 3, 5, 7));
  }
  KV_INLINE void put(int row, int k, FourFloats x) {
    __builtin_memcpy(d[row / 8 * 2 + k] + row % 8 * 4, &x, sizeof x);
  }
  /// Four at a time, as they were stored: wider ones would have to wait for the stores.
  KV_INLINE static void finish(const u32 *from, u32 *to) {
    FourFloats x;
    __builtin_memcpy(&x, from, sizeof x);
    const FourWords plain = FourWords(x == x);
    const FourWords bits = (FourWords(x) & plain) | (~plain & kNanBits);
    __builtin_memcpy(to, &bits, sizeof bits);
  }
};
/// C and D in f16: one register for each half of the rows.
struct HalfSums {
  static constexpr int kRegisters = 2;
  const float *c[2];
  alignas(64) u32 d[2][32];

  KV_INLINE void load(int row, Wide *sum) const {
    double x[8];
    Half::row(reinterpret_cast<const u32 *>(c[row / 8]) + row % 8 * 4, x);
    __builtin_memcpy(sum, x, sizeof x);
  }
  KV_INLINE static void finish(const u32 *from, u32 *to) {
    FourWords bits;
    __builtin_memcpy(&bits, from, sizeof bits);
    __builtin_memcpy(to, &bits, sizeof bits);
  }
  KV_INLINE void store(int row, const Wide *sum) {
    double x[8];
    __builtin_memcpy(x, sum, sizeof x);
    for (int t = 0; t < 4; ++t) {
      d[row / 8][row % 8 * 4 + t] = double_to_half(x[2 * t], Round::kNearest) |
                                    double_to_half(x[2 * t + 1], Round::kNearest) << 16;
    }
  }
};

/// The rows row[0 .. kRows) of D, in registers.
template <int kRows, int kK, class Sums>
KV_INLINE void multiply_rows(const double (*a)[kK], const double (&b)[kK][8], const int *row,
                             Sums &sums) {
  Wide sum[kRows][2];
#pragma GCC unroll 5
  for (int x = 0; x < kRows; ++x) sums.load(row[x], sum[x]);
#pragma GCC unroll 4
  for (int k = 0; k < kK; ++k) {
    Wide line[2];
    __builtin_memcpy(line, b[k], sizeof line);
#pragma GCC unroll 5
    for (int x = 0; x < kRows; ++x) {
      const double one = a[row[x]][k];
      const Wide all = {one, one, one, one};
      sum[x][0] = multiply_add(all, line[0], sum[x][0]);
      sum[x][1] = multiply_add(all, line[1], sum[x][1]);
    }
  }
#pragma GCC unroll 5
  for (int x = 0; x < kRows; ++x) sums.store(row[x], sum[x]);
}

/// Row `rows` - 1 of eight is also what follows it.
KV_INLINE void repeat_last(u32 *words, int rows) {
  FourWords last;
  __builtin_memcpy(&last, words + 4 * (rows - 1), sizeof last);
  for (int row = rows; row < 8; ++row) __builtin_memcpy(words + 4 * row, &last, sizeof last);
}

/// D = A * B + C, 16 x 8. Equal rows of A and C are one row of D. A sum waits for the one before:
/// few rows at a time cost as much as four or five.
template <int kK, class Sums>
KV_INLINE void multiply(const MatrixMemo &memo, const double (&b)[kK][8], Sums &sums) {
  constexpr int kEach = Sums::kRegisters / 2;  // registers of half the rows
  const double(*a)[kK] = reinterpret_cast<const double(*)[kK]>(memo.values);
  int row[16], count = 0, rows[2];
  for (int half = 0; half < 2; ++half) {
    rows[half] = distinct_rows(memo.different[half]);
    if (rows[half] < 8) {
      RowsDiffer differ;
      for (int k = 0; k < kEach; ++k) {
        differ.add(reinterpret_cast<const u32 *>(sums.c[kEach * half + k]));
      }
      rows[half] = distinct_rows(memo.different[half] | differ.mask());
    }
    for (int x = 0; x < rows[half]; ++x) row[count++] = 8 * half + x;
  }
  int at = 0;
  for (; count - at > 5; at += 4) multiply_rows<4>(a, b, row + at, sums);
  if (count - at == 5) {
    multiply_rows<5>(a, b, row + at, sums);
  } else if (count - at == 4) {
    multiply_rows<4>(a, b, row + at, sums);
  } else {
    if (count - at >= 2) multiply_rows<2>(a, b, row + at, sums);
    if ((count - at) & 1) multiply_rows<1>(a, b, row + count - 1, sums);
  }
  for (int half = 0; half < 2; ++half) {
    for (int k = 0; k < kEach; ++k) repeat_last(sums.d[kEach * half + k], rows[half]);
  }
}

/// The same, accumulated step by step as tensor cores do.
template <int kK, class Sums>
KV_INLINE void multiply_by_steps(bool ampere, const MatrixMemo &memo, const double (&b)[kK][8],
                                 Sums &sums) {
  const double(*values)[kK] = reinterpret_cast<const double(*)[kK]>(memo.values);
  double a[16][kK], out[16][8];
  __builtin_memcpy(a, values, sizeof a);
  for (int row = 0; row < 16; ++row) {
    Wide sum[2];
    sums.load(row, sum);
    __builtin_memcpy(out[row], sum, sizeof sum);
  }
  step_by_step<kK>(ampere, a, b, out);
  for (int row = 0; row < 16; ++row) {
    Wide sum[2];
    __builtin_memcpy(sum, out[row], sizeof sum);
    sums.store(row, sum);
  }
}

}  // namespace
}  // namespace kv::simt::KV_ISA
