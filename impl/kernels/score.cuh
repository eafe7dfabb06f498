// Purpose: what every attention kernel needs to know of a query row: where it lies, what it sees,
// how a dot product becomes a logit, and how a row ends.
// Contract: logits are kept in base 2, scaled by log2(e). Rounding is pinned (__f*_rn), so that
// every kernel turns the same dot product into the same logit.
#pragma once

#include <cstdint>

#include "impl/kernels/batch.cuh"
#include "impl/kernels/warp.cuh"

namespace kvattn {

constexpr float kLn2 = 0.693147180559945309f;

/// ln(sum of weights), for weights relative to 2^max_log2; -inf for a row that saw nothing.
__device__ inline float natural_lse(float max_log2, float sum) {
  return sum == 0 ? -INFINITY : __fmaf_rn(max_log2, kLn2, __fmul_rn(log2_approx(sum), kLn2));
}

struct RowAddress {
  int64_t token, head;  // in the query and output tensors
};

/// `row` counts from the tile's first packed row.
__device__ inline RowAddress row_address(const AttendParams& p, const RowTile& tile,
                                         int32_t kv_head, int32_t row) {
  const int32_t packed = tile.first_row + row;
  return {tile.first_token + packed / p.group,
          static_cast<int64_t>(kv_head) * p.group + packed % p.group};
}

struct MaskedRow {
  Visible visible;
  bool is_padding;  // past the tile's rows: what becomes of it is nobody's concern

  __device__ bool sees(int32_t slot) const { return slot >= visible.first && slot <= visible.last; }
  __device__ bool sees_all(int32_t first, int32_t last) const {
    return is_padding || (visible.first <= first && visible.last >= last);
  }
};

__device__ inline MaskedRow masked_row(const AttendParams& p, const RowTile& tile, int32_t row) {
  if (row >= tile.row_count) return {{0, -1}, true};
  const int32_t query = (tile.first_row + row) / p.group;
  return {visible_slots(p, tile, query, query), false};
}

}  // namespace kvattn
