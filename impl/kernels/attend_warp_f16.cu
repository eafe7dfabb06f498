// The kernels of attend_warp.cuh for fp16.
#include "impl/kernels/attend_warp_launch.cuh"

namespace kvattn {

const AttendLaunchers kAttendF16 = {launch_reference<__half>, launch_decode<__half>,
                                    launch_prefill_f16, launch_invariant_f16, launch_latent_f16};

cudaError_t launch_merge_f16(const AttendParams& params, cudaStream_t stream) {
  return launch_merge<__half>(params, stream);
}

}  // namespace kvattn
