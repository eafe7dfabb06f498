// The kernels of attend_warp.cuh for fp16 queries over a cache of 8-bit codes.
#include "impl/kernels/attend_warp_launch.cuh"

namespace kvattn {

const AttendLaunchers kAttendCodesF16 = {launch_reference<__half, Code>,
                                         launch_decode_codes<__half>, launch_prefill_codes_f16,
                                         launch_invariant_codes_f16};

}  // namespace kvattn
