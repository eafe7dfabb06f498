// Purpose: products of matrices of 16-bit elements with AVX-512, accumulated in f32.
// Contract: the sums of product.h in the same order, so the same bits. All of B stays in registers,
// its columns in the order 0 2 4 6 1 3 5 7: a row of C or D then is four lanes of the register of
// even columns and four of the register of odd ones.
#pragma once

#include "harness/simt/exec/isa/product.h"

#ifdef __AVX512BW__

namespace kv::simt::KV_ISA {
namespace {

/// For each permutation of a register of B the places that its words come from: row k of column g
/// is at 8 g + k. Elements are `kStep` words apart and come last of them.
template <int kStep>
struct RowOrder {
  static constexpr int kRows = 4 / kStep;  // of one permutation
  alignas(64) u16 from[2 * kStep][32] = {};
  constexpr RowOrder() {
    const int column[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    for (int q = 0; q < 2 * kStep; ++q) {
      for (int p = 0; p < 32 / kStep; ++p) {
        from[q][kStep * p + kStep - 1] = u16(8 * column[p % 8] + kRows * q + p / 8);
      }
    }
  }
};
template <int kStep>
inline constexpr RowOrder<kStep> kRowOrder;

KV_INLINE void widen(__m512 two_rows, __m512d *to) {
  to[0] = _mm512_cvtps_pd(_mm512_castps512_ps256(two_rows));
  to[1] = _mm512_cvtps_pd(_mm512_extractf32x8_ps(two_rows, 1));
}

/// A register of B as 8 rows.
template <class B>
KV_INLINE void rows_of_b(const u32 *words, __m512d *to) {
  constexpr int kStep = B::kKind == Half::kKind ? 1 : 2;
  const __m512i low = load_words(words), high = load_words(words + 16);
#pragma GCC unroll 4
  for (int q = 0; q < 2 * kStep; ++q) {
    const __m512i from = _mm512_load_si512(kRowOrder<kStep>.from[q]);
    if constexpr (kStep == 1) {
      const __m512i four = _mm512_permutex2var_epi16(low, from, high);
      widen(_mm512_cvtph_ps(_mm512_castsi512_si256(four)), to + 4 * q);
      widen(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(four, 1)), to + 4 * q + 2);
    } else {
      const __m512i two = _mm512_maskz_permutex2var_epi16(0xaaaaaaaa, low, from, high);
      widen(_mm512_castsi512_ps(two), to + 2 * q);
    }
  }
}

/// Eight columns of a row of C.
KV_INLINE __m512d row_of_c(const float *even, const float *odd) {
  return _mm512_cvtps_pd(
      _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_load_ps(even)), _mm_load_ps(odd), 1));
}
KV_INLINE __m512i canonical_words(__m512 x) {
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_mask_mov_epi32(_mm512_castps_si512(x), nan, _mm512_set1_epi32(int(kNanBits)));
}

/// One half of the rows of A, C and D: registers of even and of odd columns.
struct HalfOfRows {
  const double *a;
  const float *c[2];
  u32 *d[2];
};

/// The first kRows of eight, as sums; one stands for all.
template <int kRows>
KV_INLINE void load_sums(const HalfOfRows &m, __m512d *sum) {
#pragma GCC unroll 8
  for (int x = 0; x < kRows; ++x) sum[x] = row_of_c(m.c[0] + 4 * x, m.c[1] + 4 * x);
}
/// What follows them equals the last of them.
template <int kRows>
KV_INLINE void store_sums(const HalfOfRows &m, const __m512d *sum) {
  const auto two = [&](int x, int y) __attribute__((always_inline)) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(sum[x])),
                              _mm512_cvtpd_ps(sum[y]), 1);
  };
  if constexpr (kRows == 0) return;
  constexpr int kLast = kRows - 1;
#pragma GCC unroll 2
  for (int x = 0; x < 8; x += 4) {
    if (x > 0 && kRows <= 4) break;
    const __m512 low = two(x, kRows == 1 ? 0 : x + 1);
    const __m512 high = kRows == 1 ? low : two(x + 2, x + 3);
    const __m512i even = canonical_words(_mm512_shuffle_f32x4(low, high, 0x88));
    const __m512i odd = canonical_words(_mm512_shuffle_f32x4(low, high, 0xdd));
    store_words(m.d[0] + 4 * x, even);
    store_words(m.d[1] + 4 * x, odd);
    if (kRows <= 4) {
      constexpr int kRepeat = 0x55 * (kLast & 3);
      store_words(m.d[0] + 16, _mm512_shuffle_i32x4(even, even, kRepeat));
      store_words(m.d[1] + 16, _mm512_shuffle_i32x4(odd, odd, kRepeat));
    }
  }
}

/// Many sums at a time: each waits for the one before it.
template <int kUpper, int kLower, int kK>
KV_INLINE void multiply_rows(const HalfOfRows &upper, const HalfOfRows &lower,
                             const __m512d (&b)[kK]) {
  __m512d sum[kUpper + kLower];
  load_sums<kUpper>(upper, sum);
  load_sums<kLower>(lower, sum + kUpper);
#pragma GCC unroll 16
  for (int k = 0; k < kK; ++k) {
#pragma GCC unroll 12
    for (int x = 0; x < kUpper + kLower; ++x) {
      const double one = x < kUpper ? upper.a[kK * x + k] : lower.a[kK * (x - kUpper) + k];
      sum[x] = _mm512_fmadd_pd(_mm512_set1_pd(one), b[k], sum[x]);
    }
  }
  store_sums<kUpper>(upper, sum);
  store_sums<kLower>(lower, sum + kUpper);
}

/// `rows`: distinct ones of each half.
template <int kUpper, int kK>
KV_INLINE void multiply_lower(const HalfOfRows &upper, const HalfOfRows &lower, int rows,
                              const __m512d (&b)[kK]) {
  if (rows == 1) return multiply_rows<kUpper, 1>(upper, lower, b);
  if (rows <= 4) return multiply_rows<kUpper, 4>(upper, lower, b);
  if constexpr (kUpper < 8) return multiply_rows<kUpper, 8>(upper, lower, b);
  multiply_rows<8, 0>(upper, lower, b);
  multiply_rows<0, 8>(upper, lower, b);
}
template <int kK>
KV_INLINE void multiply_halves(const HalfOfRows &upper, const HalfOfRows &lower,
                               const int (&rows)[2], const __m512d (&b)[kK]) {
  if (rows[0] == 1) return multiply_lower<1>(upper, lower, rows[1], b);
  if (rows[0] <= 4) return multiply_lower<4>(upper, lower, rows[1], b);
  multiply_lower<8>(upper, lower, rows[1], b);
}

/// How many rows at the front of eight are enough for C, too.
KV_INLINE int distinct_rows(const HalfOfRows &m, u32 different) {
  const int rows = distinct_rows(different);
  if (rows == 8) return rows;
  RowsDiffer differ;
  for (const float *c : m.c) differ.add(reinterpret_cast<const u32 *>(c));
  const int of_c = differ.lanes ? (31 - __builtin_clz(differ.lanes)) / 4 + 2 : 1;
  return rows > of_c ? rows : of_c;
}

/// Do registers of D take the place of rows of C that are still to be read?
KV_INLINE bool halves_cross(const u16 *d, const u16 *c) {
  if (d[0] == c[0] && d[1] == c[1] && d[2] == c[2] && d[3] == c[3]) return false;
  return d[0] == c[2] || d[0] == c[3] || d[1] == c[2] || d[1] == c[3] || d[2] == c[0] ||
         d[2] == c[1] || d[3] == c[0] || d[3] == c[1];
}

/// mma.m16n8kK with elements of 16 bits and sums in f32: D, A, B, C in `r`.
template <class A, class B, int kK>
KV_INLINE void multiply_wide(Warp &w, const u16 *r) {
  constexpr int kOfA = kK / 4, kOfB = kK / 8;
  const u16 *const of_c = r + 4 + kOfA + kOfB;
  const MatrixMemo &memo = rows_of_a<A, kK>(w, r + 4);
  alignas(64) u32 spare[4][32];
  const bool direct = w.write == ~0u && !halves_cross(r, of_c);
  const auto rows_of = [&](int h) __attribute__((always_inline)) {
    HalfOfRows half;
    half.a = memo.values + 8 * h * kK;
    for (int k = 0; k < 2; ++k) {
      half.c[k] = slot<float>(w, of_c[2 * h + k]);
      half.d[k] = direct ? slot<u32>(w, r[2 * h + k]) : spare[2 * h + k];
    }
    return half;
  };
  const HalfOfRows upper = rows_of(0), lower = rows_of(1);
  const int rows[] = {distinct_rows(upper, memo.different[0]),
                      distinct_rows(lower, memo.different[1])};
  __m512d b[kK];
  for (int k = 0; k < kOfB; ++k) rows_of_b<B>(slot<u32>(w, r[4 + kOfA + k]), b + 8 * k);
  multiply_halves(upper, lower, rows, b);
  if (direct) return;
  for (int k = 0; k < 4; ++k) blend(slot<u32>(w, r[k]), spare[k], w.write);
}

}  // namespace
}  // namespace kv::simt::KV_ISA

#endif
