// Purpose: transposes 8 x 8 matrices of 16-bit elements, the fragments of ldmatrix and mma.
// Contract: rows lie one behind the other, aligned to 64 bytes.
#pragma once

#include "harness/simt/exec/isa/lanes.h"

namespace kv::simt::KV_ISA {
namespace {

#ifdef __AVX512BW__
/// Where the elements of the columns of an 8 x 8 matrix are, two to a word.
struct ColumnOrder {
  alignas(64) u32 from[2][16] = {};
  constexpr ColumnOrder() {
    for (u32 k = 0; k < 32; ++k) {
      const u32 at = k % 4 * 16 + k / 4;
      from[k / 16][k % 16] = at | (at + 8) << 16;
    }
  }
};
inline constexpr ColumnOrder kTransposed;
#endif

#ifdef __AVX2__
/// Transposes two 8 x 8 matrices of 16-bit elements, side by side in the rows r.
KV_INLINE void transpose_two(__m256i (&r)[8]) {
  __m256i t[8], u[8];
  for (int k = 0; k < 4; ++k) {
    t[2 * k] = _mm256_unpacklo_epi16(r[2 * k], r[2 * k + 1]);
    t[2 * k + 1] = _mm256_unpackhi_epi16(r[2 * k], r[2 * k + 1]);
  }
  for (int h = 0; h < 2; ++h) {
    u[h * 4] = _mm256_unpacklo_epi32(t[h * 4], t[h * 4 + 2]);
    u[h * 4 + 1] = _mm256_unpackhi_epi32(t[h * 4], t[h * 4 + 2]);
    u[h * 4 + 2] = _mm256_unpacklo_epi32(t[h * 4 + 1], t[h * 4 + 3]);
    u[h * 4 + 3] = _mm256_unpackhi_epi32(t[h * 4 + 1], t[h * 4 + 3]);
  }
  for (int k = 0; k < 4; ++k) {
    r[2 * k] = _mm256_unpacklo_epi64(u[k], u[4 + k]);
    r[2 * k + 1] = _mm256_unpackhi_epi64(u[k], u[4 + k]);
  }
}
#endif

/// Transposes an 8 x 8 matrix of 16-bit elements: row r is words[4 r .. 4 r + 3].
KV_INLINE void transpose(u32 *words) {
#if defined(__AVX512BW__)
  const Words low = load_words(words), high = load_words(words + 16);
  const Words columns = load_words(kTransposed.from[0]), rest = load_words(kTransposed.from[1]);
  store_words(words, _mm512_permutex2var_epi16(low, columns, high));
  store_words(words + 16, _mm512_permutex2var_epi16(low, rest, high));
#elif defined(__SSE2__)
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

}  // namespace
}  // namespace kv::simt::KV_ISA
