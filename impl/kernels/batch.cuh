// Purpose: which part of a ragged batch a block works on, and what each query row sees.
// Contract: pure functions of the parameters; every lane of a warp computes the same.
//
// The queries of one request that share a KV head form its *packed rows*: row r is query
// r / group of the request with head r % group of the head group, so K and V are read once for all
// of them. Packed rows are cut into tiles of `tile_rows`; request b's tiles start at tile index
// offsets[b] * group / tile_rows + b. That leaves at most one unused index for each request and
// needs no prefix sum over rounded-up tile counts.
#pragma once

#include <cstdint>

#include "impl/kernels/params.h"

namespace kvattn {

/// Largest b with start(b) <= index; start(0) <= index and start is ascending.
template <class Start>
__device__ inline int32_t find_request(int32_t requests, int32_t index, Start start) {
  int32_t low = 0, high = requests;
  while (high - low > 1) {
    const int32_t middle = (low + high) / 2;
    if (start(middle) <= index) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

struct RowTile {
  int32_t request;
  int32_t first_token;   // of the request, in the query tensor
  int32_t query_length;  // of the request
  int32_t first_row;     // packed
  int32_t row_count;     // 0 or less: nothing to do
};

__device__ inline RowTile find_row_tile(const AttendParams& p, int32_t index, int32_t tile_rows) {
  RowTile tile;
  const auto start = [&](int32_t b) { return p.query_offsets[b] * p.group / tile_rows + b; };
  tile.request = find_request(p.requests, index, start);
  tile.first_token = p.query_offsets[tile.request];
  tile.query_length = p.query_offsets[tile.request + 1] - tile.first_token;
  tile.first_row = (index - start(tile.request)) * tile_rows;
  tile.row_count = min(tile_rows, tile.query_length * p.group - tile.first_row);
  if (tile.query_length < p.query_length_min || tile.query_length > p.query_length_max) {
    tile.row_count = 0;
  }
  return tile;
}

/// Slots [first, last]; empty when first > last, then {0, -1}.
struct Visible {
  int32_t first, last;
};

__device__ inline Visible intersection(Visible a, Visible b) {
  const Visible both = {max(a.first, b.first), min(a.last, b.last)};
  return both.first > both.last ? Visible{0, -1} : both;
}

/// The anchor of a query, its causal limit, is this plus the query's number.
__device__ inline int64_t anchor_shift(const AttendParams& p, const RowTile& tile) {
  constexpr int32_t kTopLeft = 1;
  if (p.causal == kTopLeft) return 0;
  return static_cast<int64_t>(p.kv_lengths[tile.request]) - tile.query_length;
}

/// What the queries [query_first, query_last] of the tile's request see between them, counted from
/// its first query. Both ends of what a query sees grow with its number, and neighbours leave no
/// gap.
__device__ inline Visible visible_slots(const AttendParams& p, const RowTile& tile,
                                        int32_t query_first, int32_t query_last) {
  const int64_t shift = anchor_shift(p, tile);
  int64_t first = max(p.key_begin[tile.request], 0);
  int64_t last = min(p.key_end[tile.request], p.kv_lengths[tile.request]) - 1;
  if (p.causal != 0) last = min(last, shift + query_last);
  if (p.window_left >= 0) first = max(first, shift + query_first - p.window_left);
  if (p.window_right >= 0) last = min(last, shift + query_last + p.window_right);
  if (first > last) return {0, -1};
  return {static_cast<int32_t>(first), static_cast<int32_t>(last)};
}

/// What the tile's rows see between them.
__device__ inline Visible visible_slots(const AttendParams& p, const RowTile& tile) {
  return visible_slots(p, tile, tile.first_row / p.group,
                       (tile.first_row + tile.row_count - 1) / p.group);
}

}  // namespace kvattn
