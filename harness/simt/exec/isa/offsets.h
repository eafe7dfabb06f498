// Purpose: questions about the 32 offsets of an access: in bounds, aligned, in order, all the same.
// Contract: offsets are aligned to 64 bytes.
#pragma once

#include "harness/simt/exec/isa/lanes.h"

namespace kv::simt::KV_ISA {
namespace {

#ifdef __AVX512BW__
KV_INLINE bool words_equal(const u32* off, Words low, Words high) {
  return (_mm512_cmpneq_epi32_mask(load_words(off), low) |
          _mm512_cmpneq_epi32_mask(load_words(off + 16), high)) == 0;
}
#endif

/// Does every access lie in the first `bytes` bytes, and aligned?
template <u32 kBytes>
KV_INLINE bool fits(const u32* off, u64 bytes) {
#ifdef __AVX512BW__
  if (bytes < kBytes) return false;
  const u64 room = bytes - kBytes;
  const Words last = all_words(room < ~0u ? u32(room) : ~0u);
  const Words low = load_words(off), high = load_words(off + 16);
  return (_mm512_cmpgt_epu32_mask(low, last) | _mm512_cmpgt_epu32_mask(high, last) |
          _mm512_test_epi32_mask(_mm512_or_si512(low, high), all_words(kBytes - 1))) == 0;
#else
  u32 most = 0, some = 0;
  for (int l = 0; l < 32; ++l) most = off[l] > most ? off[l] : most;
  for (int l = 0; l < 32; ++l) some |= off[l];
  return u64(most) + kBytes <= bytes && (some & (kBytes - 1)) == 0;
#endif
}

template <u32 kBytes>
KV_INLINE bool consecutive(const u32* off) {
#ifdef __AVX512BW__
  const Words low =
      _mm512_add_epi32(all_words(off[0]), _mm512_mullo_epi32(lane_numbers(), all_words(kBytes)));
  return words_equal(off, low, _mm512_add_epi32(low, all_words(16 * kBytes)));
#else
  const u32 first = off[0];
  u32 wrong = 0;
  for (int l = 0; l < 32; ++l) wrong |= off[l] ^ (first + u32(l) * kBytes);
  return wrong == 0;
#endif
}
KV_INLINE bool all_equal(const u32* off) {
#ifdef __AVX512BW__
  return words_equal(off, all_words(off[0]), all_words(off[0]));
#else
  u32 wrong = 0;
  for (int l = 0; l < 32; ++l) wrong |= off[l] ^ off[0];
  return wrong == 0;
#endif
}

/// off[l] = a[l] + k; false if some active lane does not fit in 31 bits.
KV_INLINE bool relative(const u64* a, u64 k, u32 mask, u32 filler, u32* off) {
#ifdef __AVX512BW__
  const __m512i more = _mm512_set1_epi64(s64(k)), other = _mm512_set1_epi64(filler);
  __m512i some = other;
  for (u32 l = 0; l < 32; l += 16) {
    const __m512i low =
        _mm512_mask_add_epi64(other, __mmask8(mask >> l), more, _mm512_load_si512(a + l));
    const __m512i high =
        _mm512_mask_add_epi64(other, __mmask8(mask >> l >> 8), more, _mm512_load_si512(a + l + 8));
    some = _mm512_or_si512(some, _mm512_or_si512(low, high));
    store_words(off + l, _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi64_epi32(low)),
                                            _mm512_cvtepi64_epi32(high), 1));
  }
  return _mm512_test_epi64_mask(some, _mm512_set1_epi64(~s64(0x7fffffff))) == 0;
#else
  u64 high = 0;
  if (mask == ~0u) {
    for (int l = 0; l < 32; ++l) {
      const u64 v = a[l] + k;
      high |= v;
      off[l] = u32(v);
    }
  } else {
    for (int l = 0; l < 32; ++l) {
      const u64 v = mask & kLaneBit[l] ? a[l] + k : filler;
      high |= v;
      off[l] = u32(v);
    }
  }
  return high >> 31 == 0;
#endif
}

#ifdef __AVX512BW__
/// 16 bytes from each of four offsets.
KV_INLINE Words four_quads(const u8* base, const u32* off) {
  const auto quad = [&](int k) __attribute__((always_inline)) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(base + off[k]));
  };
  const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(quad(0)), quad(1), 1);
  const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(quad(2)), quad(3), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
#endif

}  // namespace
}  // namespace kv::simt::KV_ISA
