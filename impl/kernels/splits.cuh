// Purpose: how the slots of a request are divided between blocks, and where partial results lie.
// Contract: splits start at multiples of their size, whatever the batch: which slots a query's
// split i has depends on its own request only.
#pragma once

#include "impl/kernels/batch.cuh"
#include "impl/kernels/warp.cuh"

namespace kvattn {

__device__ inline int32_t split_count(const AttendParams& p, int32_t request) {
  const int64_t slots = p.kv_lengths[request];
  return max(static_cast<int32_t>((slots + p.split_slots - 1) / p.split_slots), 1);
}

__device__ inline Visible slots_of_split(const AttendParams& p, int32_t split) {
  const int64_t first = static_cast<int64_t>(split) * p.split_slots;
  const int64_t last = min(first + p.split_slots - 1, static_cast<int64_t>(INT32_MAX));
  return {static_cast<int32_t>(first), static_cast<int32_t>(last)};
}

/// What a block works on.
struct BlockWork {
  RowTile tile;
  Visible hull;    // of what the tile's rows see
  int32_t splits;  // of its request's slots; 1: they are not divided
};

/// The first warp reads what the batch says of the block, for all of them. Every thread calls.
__device__ inline BlockWork find_block_work(const AttendParams& p, int32_t tile_rows) {
  __shared__ BlockWork shared;
  if (threadIdx.x < kWarpLanes) {
    BlockWork found = {find_row_tile(p, blockIdx.x, tile_rows), {0, -1}, 1};
    if (found.tile.row_count > 0) {
      found.hull = visible_slots(p, found.tile);
      if (p.is_divided) found.splits = split_count(p, found.tile.request);
    }
    if (threadIdx.x == 0) shared = found;
  }
  __syncthreads();
  return shared;
}

/// Index of split 0 of a head of a unit (see AttendParams) in the workspace.
__device__ inline int64_t partial_index(const AttendParams& p, int64_t unit, int64_t head) {
  return (unit * p.kv_heads * p.group + head) * p.splits_max;
}

__device__ inline int32_t request_of_token(const AttendParams& p, int32_t token) {
  // Of requests that start at the same token the last is found: the others have no queries.
  return find_request(p.requests, token, [&](int32_t b) { return p.query_offsets[b]; });
}

}  // namespace kvattn
