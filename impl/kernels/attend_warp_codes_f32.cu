// The kernels of attend_warp.cuh for fp32 queries over a cache of 8-bit codes.
#include "impl/kernels/attend_warp_launch.cuh"

namespace kvattn {

const AttendLaunchers kAttendCodesF32 = {launch_reference<float, Code>, launch_decode_codes<float>,
                                         nullptr, nullptr};

}  // namespace kvattn
