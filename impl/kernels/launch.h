// Purpose: the host side of every kernel: one function for each, which launches and returns CUDA's
// answer.
// Contract: parameters were validated; at least one token. Called by dispatch/ only.
#pragma once

#include <cuda_runtime_api.h>

#include "impl/kernels/params.h"
#include "kvattn/tensor.h"

namespace kvattn {

cudaError_t launch_append(const AppendParams& params, DType dtype, cudaStream_t stream);

/// Keys that one step of the warp kernels' online softmax takes, and warps that share the keys of
/// a decode query.
constexpr uint32_t kWarpTileSlots = 32;
constexpr uint32_t kDecodeWarps = 4;

/// The kernels of one dtype.
struct AttendLaunchers {
  using Launch = cudaError_t (*)(const AttendParams&, cudaStream_t);
  Launch reference;  // attend_warp.cuh, version 1
  Launch decode;     // attend_warp.cuh, version 2
};
extern const AttendLaunchers kAttendF16, kAttendBF16, kAttendF32;

}  // namespace kvattn
