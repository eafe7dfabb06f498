// Purpose: sums and maxima over the lanes of a warp, and base-2 exponentials.
// Contract: every lane of the warp calls, converged. The order of additions is fixed.
#pragma once

#include <cstdint>

namespace kvattn {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kWarpLanes = 32;

/// ex2.approx flushes subnormal results to zero; ex2(-inf) = 0, ex2(0) = 1 exactly.
__device__ inline float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float log2_approx(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float tanh_approx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float warp_max(float x) {
#pragma unroll
  for (int step = kWarpLanes / 2; step > 0; step /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, step));
  }
  return x;
}

/// Sum over the lanes whose index differs in bits [kFrom, 32); all of them receive it.
template <int kFrom>
__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int step = kWarpLanes / 2; step >= kFrom; step /= 2) {
    x += __shfl_xor_sync(kAllLanes, x, step);
  }
  return x;
}

/// Lanes come in groups of kLanes; lane i of a group receives the group's sum of x[i].
/// Each round halves the values a lane keeps: it gives away the half that belongs to its partner.
/// kLanes - 1 shuffles in all, where kLanes separate sums would need kLanes * log2(kLanes).
template <int kLanes, int kSize>
__device__ inline float transpose_sum(float (&x)[kSize], int lane) {
  if constexpr (kLanes == 1) {
    return x[0];
  } else {
    constexpr int kHalf = kLanes / 2;
    const bool upper = lane & kHalf;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float kept = upper ? x[i + kHalf] : x[i];
      const float given = upper ? x[i] : x[i + kHalf];
      x[i] = kept + __shfl_xor_sync(kAllLanes, given, kHalf);
    }
    return transpose_sum<kHalf>(x, lane);
  }
}

}  // namespace kvattn
