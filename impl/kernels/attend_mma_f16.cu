// The kernels of attend_mma.cuh for fp16.
#include "impl/kernels/attend_mma_launch.cuh"

namespace kvattn {

cudaError_t launch_prefill_f16(const AttendParams& params, cudaStream_t stream) {
  return launch_prefill<__half>(params, stream);
}

cudaError_t launch_invariant_f16(const AttendParams& params, cudaStream_t stream) {
  const cudaError_t error = launch_prefill<__half>(params, stream);
  return error != cudaSuccess ? error : launch_merge_f16(params, stream);
}

}  // namespace kvattn
