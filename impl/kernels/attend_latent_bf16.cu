// The kernels of attend_latent.cuh for bf16.
#include "impl/kernels/attend_latent_launch.cuh"

namespace kvattn {

cudaError_t launch_latent_bf16(const AttendParams& params, cudaStream_t stream) {
  return launch_latent<__nv_bfloat16>(params, stream);
}

}  // namespace kvattn
