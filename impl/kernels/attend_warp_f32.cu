// The kernels of attend_warp.cuh for fp32.
#include "impl/kernels/attend_warp_launch.cuh"

namespace kvattn {

const AttendLaunchers kAttendF32 = {launch_reference<float>, launch_decode<float>, nullptr,
                                    nullptr};

}  // namespace kvattn
