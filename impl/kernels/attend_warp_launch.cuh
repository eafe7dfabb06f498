// Chooses the instance of the warp kernels for a head dimension and a head group. Included by one
// file for each dtype, so that the instances compile side by side.
#pragma once

#include "impl/kernels/attend_warp.cuh"

namespace kvattn {

constexpr int kTileRows = 4;

template <class T, int kLanes, int kRows, int kWarps>
cudaError_t launch_instance(const AttendParams& p, cudaStream_t stream) {
  const int64_t tiles = static_cast<int64_t>(p.tokens) * p.group / kRows + p.requests;
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(p.kv_heads));
  attend_warp_kernel<T, kLanes, kRows, kWarps><<<grid, kWarps * kWarpLanes, 0, stream>>>(p);
  return cudaGetLastError();
}

/// Rows are kLanes vectors of eight elements long. Wide heads need more registers for each row.
template <class T, int kRows, int kWarps>
cudaError_t launch_for_head_dim(const AttendParams& p, cudaStream_t stream) {
  if (p.head_dim <= 64) return launch_instance<T, 8, kRows, kWarps>(p, stream);
  if (p.head_dim <= 128) return launch_instance<T, 16, kRows, kWarps>(p, stream);
  return launch_instance<T, 32, (kRows + 1) / 2, kWarps>(p, stream);
}

template <class T>
cudaError_t launch_reference(const AttendParams& p, cudaStream_t stream) {
  return launch_for_head_dim<T, kTileRows, 1>(p, stream);
}

/// A decode query of a model without head groups is alone in its tile.
template <class T>
cudaError_t launch_decode(const AttendParams& p, cudaStream_t stream) {
  return p.group == 1 ? launch_for_head_dim<T, 1, kDecodeWarps>(p, stream)
                      : launch_for_head_dim<T, kTileRows, kDecodeWarps>(p, stream);
}

}  // namespace kvattn
