// The kernels of attend_warp.cuh for bf16.
#include "impl/kernels/attend_warp_launch.cuh"

namespace kvattn {

const AttendLaunchers kAttendBF16 = {launch_reference<__nv_bfloat16>, launch_decode<__nv_bfloat16>,
                                     launch_prefill_bf16, launch_invariant_bf16,
                                     launch_latent_bf16};

cudaError_t launch_merge_bf16(const AttendParams& params, cudaStream_t stream) {
  return launch_merge<__nv_bfloat16>(params, stream);
}

}  // namespace kvattn
