// The kernels of attend_mma_codes.cuh for bf16 queries.
#include "impl/kernels/attend_mma_codes.cuh"

namespace kvattn {

cudaError_t launch_prefill_codes_bf16(const AttendParams& params, cudaStream_t stream) {
  return launch_mma_codes<__nv_bfloat16>(params, stream);
}

cudaError_t launch_invariant_codes_bf16(const AttendParams& params, cudaStream_t stream) {
  const cudaError_t error = launch_mma_codes<__nv_bfloat16>(params, stream);
  return error != cudaSuccess ? error : launch_merge_bf16(params, stream);
}

}  // namespace kvattn
