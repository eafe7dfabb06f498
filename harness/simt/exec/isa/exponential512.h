// Purpose: ex2 of a warp with AVX-512, as Exp2::brief of math/approximate.h.
// Contract: what is settled is what brief() gives: how the polynomial is evaluated decides no bit.
#pragma once

#include "harness/simt/exec/isa/lanes.h"
#include "harness/simt/exec/math/approximate.h"

#ifdef __AVX512BW__

namespace kv::simt::KV_ISA {
namespace {

/// 2^x within kBriefExp2Error, |x| <= 1000.
KV_INLINE __m512d exp2_of_eight(__m512d x) {
  const __m512d n = _mm512_roundscale_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512d f = _mm512_sub_pd(x, n);
  __m512d p = _mm512_set1_pd(kBriefExp2[0]);
#pragma GCC unroll 8
  for (int k = 1; k < 9; ++k) p = _mm512_fmadd_pd(p, f, _mm512_set1_pd(kBriefExp2[k]));
  return _mm512_scalef_pd(p, n);
}

/// The floats of eight doubles that are a little less or more.
KV_INLINE __m256 scaled_floats(__m512d y, double factor) {
  return _mm512_cvtpd_ps(_mm512_mul_pd(y, _mm512_set1_pd(factor)));
}

/// Into `t`; the lanes that the polynomial leaves in doubt.
KV_INLINE u32 brief_lanes(Exp2, const float* a, u32* t) {
  u32 doubt = 0;
  for (int l = 0; l < 32; l += 16) {
    const __m512 x = _mm512_load_ps(a + l);
    const __m512 size = _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(-200)), _mm512_set1_ps(200));
    const __m512d low = exp2_of_eight(_mm512_cvtps_pd(_mm512_castps512_ps256(size)));
    const __m512d high = exp2_of_eight(_mm512_cvtps_pd(_mm512_extractf32x8_ps(size, 1)));
    const auto both = [&](double factor) __attribute__((always_inline)) {
      return _mm512_insertf32x8(_mm512_castps256_ps512(scaled_floats(low, factor)),
                                scaled_floats(high, factor), 1);
    };
    const __m512i most = _mm512_castps_si512(both(1 + kBriefExp2Error));
    const __m512i least = _mm512_castps_si512(both(1 - kBriefExp2Error));
    doubt |= u32(_mm512_cmpneq_epi32_mask(most, least)) << l;
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    store_words(t + l, _mm512_mask_mov_epi32(most, nan, _mm512_set1_epi32(int(kNanBits))));
  }
  return doubt;
}

}  // namespace
}  // namespace kv::simt::KV_ISA

#endif
