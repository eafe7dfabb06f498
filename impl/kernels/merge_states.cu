// Adds up states.
//
// Version 1: one warp for each row and head, eight dimensions to a lane. A first pass over the LSEs
// finds their maximum, a second one weighs and adds, so every weight is at most 1.
#include "impl/kernels/merge_states.h"
#include "impl/kernels/score.cuh"
#include "impl/kernels/vector.cuh"

namespace kvattn {
namespace {

/// Grid: x tokens, y query heads.
template <class T>
__global__ void __launch_bounds__(kWarpLanes) merge_states_kernel(const MergeParams p) {
  const int64_t token = blockIdx.x, head = blockIdx.y;
  const float* lses = p.lses + token * p.lses_token_stride + head * p.lses_head_stride;
  const T* outputs =
      static_cast<const T*>(p.outputs) + token * p.token_stride + head * p.head_stride;
  float top = -INFINITY, sum = 0;
  for (int32_t s = 0; s < p.states; ++s) top = fmaxf(top, lses[s * p.lses_state_stride]);
  for (int32_t s = 0; s < p.states; ++s) {
    const float lse = lses[s * p.lses_state_stride];
    if (lse != -INFINITY) sum = __fadd_rn(sum, exp2_approx(to_log2(__fsub_rn(lse, top))));
  }
  const float factor = sum == 0 ? 0.0f : 1.0f / sum;
  for (int32_t dim = threadIdx.x * kVector; dim < p.value_dim; dim += kWarpLanes * kVector) {
    Vec8 merged = {};
    for (int32_t s = 0; s < p.states; ++s) {
      const float lse = lses[s * p.lses_state_stride];
      if (lse == -INFINITY) continue;
      const float weight = exp2_approx(to_log2(__fsub_rn(lse, top)));
      const Vec8 part = load8(outputs + s * p.state_stride + dim);
#pragma unroll
      for (int i = 0; i < kVector; ++i) merged.x[i] = __fmaf_rn(weight, part.x[i], merged.x[i]);
    }
#pragma unroll
    for (int i = 0; i < kVector; ++i) merged.x[i] = __fmul_rn(merged.x[i], factor);
    store8(static_cast<T*>(p.output) + token * p.output_token_stride + head * p.output_head_stride +
               dim,
           merged);
  }
  if (threadIdx.x != 0) return;
  p.lse[token * p.lse_token_stride + head * p.lse_head_stride] =
      sum == 0 ? -INFINITY : __fmaf_rn(log2_approx(sum), kLn2, top);
}

template <class T>
void launch(const MergeParams& p, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(p.tokens), static_cast<unsigned>(p.query_heads));
  merge_states_kernel<T><<<grid, kWarpLanes, 0, stream>>>(p);
}

}  // namespace

cudaError_t launch_merge_states(const MergeParams& params, DType dtype, cudaStream_t stream) {
  if (dtype == DType::kF16) launch<__half>(params, stream);
  if (dtype == DType::kBF16) launch<__nv_bfloat16>(params, stream);
  if (dtype == DType::kF32) launch<float>(params, stream);
  return cudaGetLastError();
}

}  // namespace kvattn
