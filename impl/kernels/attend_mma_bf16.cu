// The kernels of attend_mma.cuh for bf16.
#include "impl/kernels/attend_mma_launch.cuh"

namespace kvattn {

cudaError_t launch_prefill_bf16(const AttendParams& params, cudaStream_t stream) {
  return launch_prefill<__nv_bfloat16>(params, stream);
}

cudaError_t launch_invariant_bf16(const AttendParams& params, cudaStream_t stream) {
  const cudaError_t error = launch_prefill<__nv_bfloat16>(params, stream);
  return error != cudaSuccess ? error : launch_merge_bf16(params, stream);
}

}  // namespace kvattn
