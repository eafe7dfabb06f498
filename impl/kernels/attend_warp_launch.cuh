// Chooses the instance of the warp kernels for a head dimension and a head group. Included by one
// file for each dtype, so that the instances compile side by side.
#pragma once

#include <algorithm>

#include "impl/kernels/attend_decode_group.cuh"

namespace kvattn {

constexpr int kTileRows = 4;

inline dim3 warp_grid(const AttendParams& p, int tile_rows) {
  const int64_t tiles = static_cast<int64_t>(p.tokens) * p.group / tile_rows + p.requests;
  return dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(p.kv_heads));
}

template <class T, class Stored, int kLanes, int kRows>
cudaError_t launch_reference_instance(const AttendParams& p, cudaStream_t stream) {
  attend_reference_kernel<T, Stored, kLanes, kRows>
      <<<warp_grid(p, kRows), kWarpLanes, 0, stream>>>(p);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_merge(const AttendParams& p, cudaStream_t stream) {
  if (p.splits_max == 1) return cudaSuccess;
  const dim3 units(static_cast<unsigned>(p.partials_by_token ? p.tokens : p.requests),
                   static_cast<unsigned>(p.kv_heads * p.group));
  merge_splits_kernel<T><<<units, kWarpLanes, 0, stream>>>(p);
  return cudaGetLastError();
}

/// A block for as many heads of a group as it has room for.
template <class T, class Stored, int kLanes, int kRows>
cudaError_t launch_decode_group(const AttendParams& p, cudaStream_t stream) {
  constexpr int kBytes = sizeof(DecodeRound<Stored, kLanes, kRows>);
  const auto kernel = attend_decode_group_kernel<T, Stored, kLanes, kRows>;
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  const int sets = std::min((p.group + kRows - 1) / kRows, kDecodeSetsMax);
  dim3 grid = warp_grid(p, sets * kRows);
  grid.z = static_cast<unsigned>(p.splits_max);
  kernel<<<grid, static_cast<unsigned>(sets) * kDecodeSetThreads, kBytes, stream>>>(p);
  error = cudaGetLastError();
  return error != cudaSuccess ? error : launch_merge<T>(p, stream);
}

/// K and V of fp32 would not fit into shared memory: they are read once for each tile of rows.
template <class T, class Stored, int kLanes, int kRows>
cudaError_t launch_decode_instance(const AttendParams& p, cudaStream_t stream) {
  if constexpr (kRows > 1 && sizeof(Stored) <= 2) {
    if (p.group > kRows) return launch_decode_group<T, Stored, kLanes, kRows>(p, stream);
  }
  dim3 grid = warp_grid(p, kRows);
  grid.z = static_cast<unsigned>(p.splits_max);
  attend_decode_kernel<T, Stored, kLanes, kRows><<<grid, kDecodeWarps * kWarpLanes, 0, stream>>>(p);
  const cudaError_t error = cudaGetLastError();
  return error != cudaSuccess ? error : launch_merge<T>(p, stream);
}

/// The longer of a row of K and a row of V.
inline int32_t widest_row(const AttendParams& p) { return std::max(p.head_dim, p.value_dim); }

/// A row is kLanes vectors of eight elements long. Wide rows take more registers.
template <class T, class Stored = T>
cudaError_t launch_reference(const AttendParams& p, cudaStream_t stream) {
  if (widest_row(p) <= 64) return launch_reference_instance<T, Stored, 8, kTileRows>(p, stream);
  if (widest_row(p) <= 128) return launch_reference_instance<T, Stored, 16, kTileRows>(p, stream);
  return launch_reference_instance<T, Stored, 32, kTileRows / 2>(p, stream);
}

template <class T, class Stored, int kRows>
cudaError_t launch_decode_rows(const AttendParams& p, cudaStream_t stream) {
  if (widest_row(p) <= 64) return launch_decode_instance<T, Stored, 8, kRows>(p, stream);
  if (widest_row(p) <= 128) return launch_decode_instance<T, Stored, 16, kRows>(p, stream);
  return launch_decode_instance<T, Stored, 32, (kRows + 1) / 2>(p, stream);
}

/// Without head groups a query is alone in its tile.
template <class T>
cudaError_t launch_decode(const AttendParams& p, cudaStream_t stream) {
  return p.group == 1 ? launch_decode_rows<T, T, 1>(p, stream)
                      : launch_decode_rows<T, T, kTileRows>(p, stream);
}

/// One instance for every group: it is compiled for three formats already.
template <class T>
cudaError_t launch_decode_codes(const AttendParams& p, cudaStream_t stream) {
  return launch_decode_rows<T, Code, kTileRows>(p, stream);
}

}  // namespace kvattn
