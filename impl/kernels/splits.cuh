// Purpose: how the slots of a request are divided between blocks, and where partial results lie.
// Contract: splits start at multiples of their size, whatever the batch: which slots a query's
// split i has depends on its own request only.
#pragma once

#include "impl/kernels/batch.cuh"

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

/// Index of split 0 of a head of a unit (see AttendParams) in the workspace.
__device__ inline int64_t partial_index(const AttendParams& p, int64_t unit, int64_t head) {
  return (unit * p.kv_heads * p.group + head) * p.splits_max;
}

__device__ inline int32_t request_of_token(const AttendParams& p, int32_t token) {
  // Of requests that start at the same token the last is found: the others have no queries.
  return find_request(p.requests, token, [&](int32_t b) { return p.query_offsets[b]; });
}

}  // namespace kvattn
