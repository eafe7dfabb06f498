// The kernels of attend_mma_codes.cuh for fp16 queries.
#include "impl/kernels/attend_mma_codes.cuh"

namespace kvattn {

cudaError_t launch_prefill_codes_f16(const AttendParams& params, cudaStream_t stream) {
  return launch_mma_codes<__half>(params, stream);
}

cudaError_t launch_invariant_codes_f16(const AttendParams& params, cudaStream_t stream) {
  const cudaError_t error = launch_mma_codes<__half>(params, stream);
  return error != cudaSuccess ? error : launch_merge_f16(params, stream);
}

}  // namespace kvattn
