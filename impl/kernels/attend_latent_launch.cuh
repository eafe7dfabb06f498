// The kernels over a latent cache, and which instance of them a batch gets. Included by one file
// for each dtype, so that the instances compile side by side.
#pragma once

#include "impl/kernels/attend_decode.cuh"
#include "impl/kernels/attend_latent.cuh"

namespace kvattn {

/// Block: LatentShares::kWarps warps. Grid: x row tiles (see batch.cuh), y KV heads, z splits.
template <class T, int kRowTiles>
__global__ void __launch_bounds__(LatentShares<kRowTiles>::kThreads, 1)
    attend_latent_kernel(const AttendParams p) {
  extern __shared__ __align__(128) uint8_t shared[];
  using Attention = LatentAttention<T, kRowTiles>;
  __shared__ int32_t pages[Attention::kThreads];
  const BlockWork work = find_block_work(p, Attention::kRows);
  const RowTile& tile = work.tile;
  if (tile.row_count <= 0) return;
  const int32_t splits = work.splits, split = blockIdx.z;
  if (split >= splits) return;
  Attention attention{
      p,
      tile,
      static_cast<int32_t>(blockIdx.y),
      shared_address(shared),
      *reinterpret_cast<LatentExchange<kRowTiles>*>(shared + kLatentRowBytes<kRowTiles>),
      {pages}};
  attention.begin(work.hull, splits > 1 ? slots_of_split(p, split) : Visible{0, INT32_MAX});
  const Visible seen = attention.seen;
  if (seen.last >= 0) {
    const int32_t end = seen.last / kLatentTile + 1;
    int32_t index = seen.first / kLatentTile;
    attention.copy_query();
    attention.copy_tile(index * kLatentTile, 0);
    commit_copies();
    for (int stage = 0; index < end; ++index, stage ^= 1) {
      if (index + 1 < end) attention.copy_tile((index + 1) * kLatentTile, stage ^ 1);
      commit_copies();
      wait_copies<1>();
      __syncthreads();  // everybody's copies of this tile have arrived
      attention.take_tile(index * kLatentTile, stage);
      __syncthreads();  // nobody reads this stage or its weights any more
    }
  }
  attention.write(splits > 1 ? split : -1);
}

/// Block: kLatentDimV / 8 threads, a vector of eight dimensions each. Grid: x tokens, y query
/// heads.
template <class T>
__global__ void __launch_bounds__(kLatentDimV / kVector) merge_latent_kernel(const AttendParams p) {
  const int32_t token = blockIdx.x, head = blockIdx.y;
  const int32_t request = request_of_token(p, token), splits = split_count(p, request);
  if (splits == 1) return;  // written by its only split
  const int64_t first = partial_index(p, token, head);
  const float2* states = reinterpret_cast<const float2*>(p.partial_state) + first;
  const float* outputs = p.partial_output + first * kLatentDimV + threadIdx.x * kVector;
  MergedMax top;
  for (int32_t s = 0; s < splits; ++s) top.take(states[s].x);
  RowState row = {};
  row.max_log2 = top.max_log2;
  for (int32_t s = 0; s < splits; ++s) {
    const Vec8 output = load8(outputs + static_cast<int64_t>(s) * kLatentDimV);
    add_state(row, top.shift(), states[s].x, states[s].y, output);
  }
  write_row<T>(p, {token, head}, row, threadIdx.x);
}

template <class T, int kRowTiles>
cudaError_t launch_latent_instance(const AttendParams& p, cudaStream_t stream) {
  using Shares = LatentShares<kRowTiles>;
  constexpr int kBytes = kLatentSharedBytes<kRowTiles>;
  const auto kernel = attend_latent_kernel<T, kRowTiles>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  const int64_t tiles = static_cast<int64_t>(p.tokens) * p.group / Shares::kRows + p.requests;
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(p.kv_heads),
                  static_cast<unsigned>(p.splits_max));
  kernel<<<grid, Shares::kThreads, kBytes, stream>>>(p);
  return cudaGetLastError();
}

/// Four row tiles to a block when the requests have rows for them; bits do not depend on it.
template <class T>
cudaError_t launch_latent(const AttendParams& p, cudaStream_t stream) {
  const int64_t rows_mean = static_cast<int64_t>(p.tokens) * p.group / p.requests;
  const cudaError_t error = rows_mean > kLatentRowTile ? launch_latent_instance<T, 4>(p, stream)
                                                       : launch_latent_instance<T, 1>(p, stream);
  if (error != cudaSuccess || p.splits_max == 1) return error;
  const dim3 rows(static_cast<unsigned>(p.tokens), static_cast<unsigned>(p.kv_heads * p.group));
  merge_latent_kernel<T><<<rows, kLatentDimV / kVector, 0, stream>>>(p);
  return cudaGetLastError();
}

}  // namespace kvattn
