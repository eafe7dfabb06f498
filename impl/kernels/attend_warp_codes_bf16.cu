// The kernels of attend_warp.cuh for bf16 queries over a cache of 8-bit codes.
#include "impl/kernels/attend_warp_launch.cuh"

namespace kvattn {

const AttendLaunchers kAttendCodesBF16 = {launch_reference<__nv_bfloat16, Code>,
                                          launch_decode_codes<__nv_bfloat16>,
                                          launch_prefill_codes_bf16, launch_invariant_codes_bf16};

}  // namespace kvattn
