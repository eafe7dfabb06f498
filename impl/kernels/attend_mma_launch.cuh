// Chooses the instance of the tensor-core kernels for a head dimension and a batch. Included by one
// file for each dtype, so that the instances compile side by side.
#pragma once

#include <algorithm>

#include "impl/kernels/attend_mma.cuh"

namespace kvattn {

template <class T, int kDim, int kWarps>
cudaError_t launch_mma_instance(const AttendParams& p, cudaStream_t stream) {
  constexpr int kBytes = kMmaSharedBytes<kDim, kWarps>;
  const auto kernel = attend_mma_kernel<T, kDim, kWarps>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  const int64_t tiles = static_cast<int64_t>(p.tokens) * p.group / (kMmaRows * kWarps) + p.requests;
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(p.kv_heads),
                  static_cast<unsigned>(p.is_divided ? p.splits_max : 1));
  kernel<<<grid, kWarps * kWarpLanes, kBytes, stream>>>(p);
  return cudaGetLastError();
}

/// Four warps share K and V when the requests have rows for them; bits do not depend on it.
template <class T, int kDim>
cudaError_t launch_mma_for_batch(const AttendParams& p, cudaStream_t stream) {
  const int64_t rows_mean = static_cast<int64_t>(p.tokens) * p.group / p.requests;
  return rows_mean > kMmaRows ? launch_mma_instance<T, kDim, 4>(p, stream)
                              : launch_mma_instance<T, kDim, 1>(p, stream);
}

template <class T>
cudaError_t launch_prefill(const AttendParams& p, cudaStream_t stream) {
  const int32_t widest = std::max(p.head_dim, p.value_dim);
  if (widest <= 64) return launch_mma_for_batch<T, 64>(p, stream);
  if (widest <= 128) return launch_mma_for_batch<T, 128>(p, stream);
  return launch_mma_for_batch<T, 256>(p, stream);
}

}  // namespace kvattn
