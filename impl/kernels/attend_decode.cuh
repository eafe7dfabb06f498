// Attention for requests with one query.
//
// Version 1 ("decode", one split): kDecodeWarps warps share the slots of the same packed rows, the
// heads of one group, tile t going to warp t % kDecodeWarps, and merge their states through shared
// memory. A query with a long context is no longer bound by the latency of one warp.
//
// Version 2 (several splits): the slots are also cut into splits of a fixed size, one block each,
// so that a small batch with long contexts fills the device. Each block leaves its state in the
// workspace and merge_splits_kernel adds them up.
//
// States are added in the order of warps and splits, and splits start at multiples of their size: a
// query's bits depend on its own request and the split size only.
#pragma once

#include "impl/kernels/attend_warp.cuh"
#include "impl/kernels/splits.cuh"

namespace kvattn {

/// Running maximum of several states, and the shift of their exponents: any finite one as long as
/// all are empty.
struct MergedMax {
  float max_log2 = -INFINITY;
  __device__ void take(float other) { max_log2 = fmaxf(max_log2, other); }
  __device__ float shift() const { return max_log2 == -INFINITY ? 0.0f : max_log2; }
};

/// Adds a state, relative to 2^max_log2, to `row`, which is relative to 2^shift.
__device__ inline void add_state(RowState& row, float shift, float max_log2, float sum,
                                 const Vec8& output) {
  const float rescale = exp2_approx(__fsub_rn(max_log2, shift));
  row.sum = __fmaf_rn(sum, rescale, row.sum);
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    row.output.x[i] = __fmaf_rn(output.x[i], rescale, row.output.x[i]);
  }
}

/// What the warps leave in shared memory for the merge of one row. The halves of a vector lie
/// apart, so that neighbouring lanes use neighbouring banks.
template <int kLanes>
struct alignas(16) WarpStates {
  float4 low[kDecodeWarps][kLanes], high[kDecodeWarps][kLanes];
  float max_log2[kDecodeWarps], sum[kDecodeWarps];

  __device__ void put(int warp, const Place<kLanes>& place, const RowState& row) {
    if (place.group == 0) {
      const float(&x)[kVector] = row.output.x;
      low[warp][place.index] = make_float4(x[0], x[1], x[2], x[3]);
      high[warp][place.index] = make_float4(x[4], x[5], x[6], x[7]);
    }
    if (place.lane == 0) {
      max_log2[warp] = row.max_log2;
      sum[warp] = row.sum;
    }
  }
  /// Q, read once for all warps: row w by warp w. Every thread calls.
  template <class T, class Stored, int kRows>
  __device__ void share_queries(int warp, WarpAttention<T, Stored, kLanes, kRows>& attention) {
    static_assert(kRows <= kDecodeWarps);
    const Place<kLanes>& place = attention.place;
    if (warp < kRows && place.group == 0) {
      const Vec8 q = attention.load_query(warp);
      low[warp][place.index] = make_float4(q.x[0], q.x[1], q.x[2], q.x[3]);
      high[warp][place.index] = make_float4(q.x[4], q.x[5], q.x[6], q.x[7]);
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 a = low[r][place.index], b = high[r][place.index];
      attention.rows[r].query = {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
    }
    __syncthreads();  // the buffer is for states from now on
  }
  __device__ RowState merge(const Place<kLanes>& place) const {
    MergedMax top;
    for (int w = 0; w < kDecodeWarps; ++w) top.take(max_log2[w]);
    RowState row = {};
    row.max_log2 = top.max_log2;
    for (int w = 0; w < kDecodeWarps; ++w) {
      const float4 a = low[w][place.index], b = high[w][place.index];
      add_state(row, top.shift(), max_log2[w], sum[w], {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}});
    }
    return row;
  }
};

/// A split that saw nothing leaves an empty state: the merge reads every split.
__device__ inline void write_partial(const AttendParams& p, int64_t index, const RowState& row,
                                     int vector) {
  if (vector * kVector < p.value_dim) {
    store8(p.partial_output + index * p.value_dim + vector * kVector, row.output);
  }
  if (vector == 0) {
    *reinterpret_cast<float2*>(p.partial_state + 2 * index) = make_float2(row.max_log2, row.sum);
  }
}

/// Block: kDecodeWarps warps. Grid: x row tiles (see batch.cuh), y KV heads, z splits.
template <class T, class Stored, int kLanes, int kRows>
__global__ void __launch_bounds__(kDecodeWarps* kWarpLanes)
    attend_decode_kernel(const AttendParams p) {
  const BlockWork work = find_block_work(p, kRows);
  const RowTile& tile = work.tile;
  if (tile.row_count <= 0) return;
  const int32_t splits = work.splits, split = blockIdx.z;
  if (split >= splits) return;
  __shared__ WarpStates<kLanes> states;
  const int warp = threadIdx.x / kWarpLanes;
  WarpAttention<T, Stored, kLanes, kRows> attention{p, tile, static_cast<int32_t>(blockIdx.y)};
  attention.begin(work.hull);
  states.share_queries(warp, attention);
  if (splits > 1) attention.clip(slots_of_split(p, split));
  attention.template take_tiles<kDecodeWarps>(warp);

  // Row by row through one small buffer, so that shared memory does not grow with kRows.
  const Place<kLanes> place = attention.place;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r >= tile.row_count) break;
    attention.gather(attention.rows[r]);
    states.put(warp, place, attention.rows[r]);
    __syncthreads();
    if (warp == 0) {
      const RowState row = states.merge(place);
      if (splits == 1) {
        attention.write(r, row);
      } else if (place.group == 0) {
        const int64_t head = row_address(p, tile, attention.kv_head, r).head;
        write_partial(p, partial_index(p, tile.request, head) + split, row, place.index);
      }
    }
    __syncthreads();  // the buffer is written again for the next row
  }
}

/// Block: one warp, a vector of eight dimensions to a lane. Grid: x units, y query heads.
template <class T>
__global__ void __launch_bounds__(kWarpLanes) merge_splits_kernel(const AttendParams p) {
  const int32_t unit = blockIdx.x, head = blockIdx.y;
  const int32_t request = p.partials_by_token ? request_of_token(p, unit) : unit;
  const int32_t token = p.partials_by_token ? unit : p.query_offsets[request];
  const int32_t query_length = p.query_offsets[request + 1] - p.query_offsets[request];
  if (query_length < p.query_length_min || query_length > p.query_length_max) return;
  const int32_t splits = split_count(p, request);
  if (splits == 1) return;  // written by its only split

  const int64_t first = partial_index(p, unit, head);
  const int lane = threadIdx.x;
  const float2* states = reinterpret_cast<const float2*>(p.partial_state) + first;
  const float* outputs = p.partial_output + first * p.value_dim + lane * kVector;
  const bool has_output = lane * kVector < p.value_dim;
  MergedMax top;
  for (int32_t s = 0; s < splits; ++s) top.take(states[s].x);
  RowState row = {};
  row.max_log2 = top.max_log2;
  for (int32_t s = 0; s < splits; ++s) {
    const Vec8 output =
        has_output ? load8(outputs + static_cast<int64_t>(s) * p.value_dim) : Vec8{};
    add_state(row, top.shift(), states[s].x, states[s].y, output);
  }
  write_row<T>(p, {token, head}, row, lane);
}

}  // namespace kvattn
