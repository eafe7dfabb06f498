// The kernels of attend_latent.cuh for fp16.
#include "impl/kernels/attend_latent_launch.cuh"

namespace kvattn {

cudaError_t launch_latent_f16(const AttendParams& params, cudaStream_t stream) {
  return launch_latent<__half>(params, stream);
}

}  // namespace kvattn
