// Purpose: min and max of f32, lane by lane and in vectors.
// Contract: PTX ISA 9.0 sections 9.7.3.11 and 9.7.3.12.
#pragma once

#include "harness/simt/exec/isa/lanes.h"

namespace kv::simt::KV_ISA {
namespace {

enum class Pick { kMin, kMax };
/// One NaN loses against a number; +0 is above -0. `kNan`: NaN wins.
template <Pick kPick, bool kFtz, bool kNan>
KV_INLINE u32 pick(float p, float q) {
  const float a = kFtz ? flush(p) : p, b = kFtz ? flush(q) : q;
  const u32 x = bits_of(a), y = bits_of(b);
  const u32 equal = kPick == Pick::kMax ? (x & y) : (x | y);
  const u32 ordered = (kPick == Pick::kMax ? a > b : a < b) ? x : y;
  const u32 numbers = a == b ? equal : ordered;
  if (kNan) return a == a && b == b ? numbers : kNanBits;
  const u32 one = a == a ? x : (b == b ? y : kNanBits);
  return a == a && b == b ? numbers : one;
}

#ifdef __AVX512BW__
template <bool kFtz>
KV_INLINE Words flushed(Words x) {
  const __mmask16 zero = _mm512_testn_epi32_mask(x, all_words(0x7f800000));
  return kFtz ? _mm512_mask_and_epi32(x, zero, x, all_words(0x80000000)) : x;
}
/// pick() of vectors.
template <Pick kPick, bool kFtz, bool kNan>
KV_INLINE Words pick_words(Words p, Words q) {
  const Words x = flushed<kFtz>(p), y = flushed<kFtz>(q), nan = all_words(kNanBits);
  const __m512 a = _mm512_castsi512_ps(x), b = _mm512_castsi512_ps(y);
  constexpr bool kMax = kPick == Pick::kMax;
  const __mmask16 first = _mm512_cmp_ps_mask(a, b, kMax ? _CMP_GT_OQ : _CMP_LT_OQ);
  const __mmask16 equal = _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
  const __mmask16 nan_a = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
  const __mmask16 nan_b = _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q);
  Words r = _mm512_mask_mov_epi32(y, kNan ? first : __mmask16(first | nan_b), x);
  r = kMax ? _mm512_mask_and_epi32(r, equal, x, y) : _mm512_mask_or_epi32(r, equal, x, y);
  return _mm512_mask_mov_epi32(r, __mmask16(kNan ? nan_a | nan_b : nan_a & nan_b), nan);
}
#endif

}  // namespace
}  // namespace kv::simt::KV_ISA
