// Attention with plain fp32 arithmetic.
//
// Version 1 ("reference"): one warp for each tile of kRows packed query rows. The warp takes 32
// slots at a time. A group of kLanes lanes shares one slot, eight dimensions to a lane, so K and V
// rows are read whole and Q and O stay in registers. transpose_sum leaves each lane with the score
// of one slot of its own, and the softmax of 32 slots costs one exponential.
//
// Tiles start at multiples of 32 and are visited in ascending order, whatever the batch, the page
// size or the other rows of the tile: a query's bits depend on its own request only.
//
// Over a cache of 8-bit codes (Stored = Code) products are of codes: K's scale multiplies the score
// of its slot, V's the weight, once for each slot rather than for each element.
#pragma once

#include "impl/kernels/batch.cuh"
#include "impl/kernels/codes.cuh"
#include "impl/kernels/launch.h"
#include "impl/kernels/score.cuh"
#include "impl/kernels/vector.cuh"
#include "impl/kernels/warp.cuh"

namespace kvattn {

/// State of the online softmax of one query row. `sum` is this lane's part.
struct RowState {
  ScoredRow scored;
  float max_log2, sum;
  Vec8 query, output;
};

/// Writes O and LSE of a row. `index` is the vector of O that this lane holds in row.output.
template <class T>
__device__ inline void write_row(const AttendParams& p, RowAddress at, const RowState& row,
                                 int index) {
  const RowEnd end = end_row(p, at.head, row.max_log2, row.sum);
  Vec8 result;
#pragma unroll
  for (int i = 0; i < kVector; ++i) result.x[i] = __fmul_rn(row.output.x[i], end.factor);
  if (index * kVector < p.value_dim) {
    store8(static_cast<T*>(p.output) + at.token * p.output_token_stride +
               at.head * p.output_head_stride + index * kVector,
           result);
  }
  if (index == 0) p.lse[at.token * p.lse_token_stride + at.head * p.lse_head_stride] = end.lse;
}

/// A lane's place: lane `index` of group `group` of kLanes lanes.
template <int kLanes>
struct Place {
  static constexpr int kGroups = kWarpLanes / kLanes;
  int lane = threadIdx.x % kWarpLanes;
  int index = lane % kLanes;
  int group = lane / kLanes;
  int dim = index * kVector;

  /// Slot of the tile that this lane's group reads in step `step`.
  __device__ int slot_of_step(int step) const { return step * kGroups + group; }
};

template <class T, class Stored, int kLanes, int kRows>
struct WarpAttention {
  static constexpr bool kHasScales = sizeof(Stored) == 1;
  const AttendParams& p;
  const RowTile& tile;
  int32_t kv_head;
  Place<kLanes> place;
  RowState rows[kRows];
  Visible seen;  // hull of what the rows see
  // What this lane reads of it: nothing when its dimensions are past the head's.
  Visible reads_key, reads_value;
  const Stored *key, *value;             // this lane's dimensions of slot 0 of page 0
  float key_scale = 1, value_scale = 1;  // of all slots, when they share it

  __device__ void begin() {
    begin(visible_slots(p, tile));
#pragma unroll
    for (int r = 0; r < kRows; ++r) rows[r].query = load_query(r);
  }

  /// This lane's part of a row of Q; zeros beyond its end, and of rows that are not there.
  __device__ Vec8 load_query(int r) const {
    if (r >= tile.row_count || place.dim >= p.head_dim) return {};
    const RowAddress at = row_address(p, tile, kv_head, r);
    return load8(static_cast<const T*>(p.query) + at.token * p.query_token_stride +
                 at.head * p.query_head_stride + place.dim);
  }

  /// All but Q. `hull` is what the tile's rows see between them.
  __device__ void begin(Visible hull) {
    seen = hull;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      RowState& row = rows[r];
      row.scored = scored_row(p, tile, kv_head, r, hull);
      row.max_log2 = -INFINITY;
      row.sum = 0;
      row.output = {};
    }
    if constexpr (kHasScales) take_scale();
    take_reads();
    key = static_cast<const Stored*>(p.cache.key) + kv_head * p.cache.key_head_stride + place.dim;
    value =
        static_cast<const Stored*>(p.cache.value) + kv_head * p.cache.value_head_stride + place.dim;
  }

  __device__ void take_reads() {
    reads_key = place.dim < p.head_dim ? seen : Visible{0, -1};
    reads_value = place.dim < p.value_dim ? seen : Visible{0, -1};
  }

  /// Hides every slot outside `part`.
  __device__ void clip(Visible part) {
    seen = intersection(seen, part);
    take_reads();
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      rows[r].scored.visible = intersection(rows[r].scored.visible, part);
    }
  }

  /// Takes every kStride-th tile of what is seen, those with index kStride * n + first.
  template <int kStride>
  __device__ void take_tiles(int first) {
    if (seen.last < 0) return;
    constexpr int32_t kTile = kWarpTileSlots;
    int32_t index = seen.first / kTile;
    index += (first + kStride - index % kStride) % kStride;
    for (; index <= seen.last / kTile; index += kStride) take_tile(index * kTile);
  }

  /// Whether step `step` of the tile that starts at `base` is about a slot of `reads`.
  __device__ bool has_slot(Visible reads, int32_t base, int step) const {
    const int32_t slot = base + place.slot_of_step(step);
    return slot >= reads.first && slot <= reads.last;
  }

  /// Lane i of a group looks up the page of the slot that the group reads in step i.
  __device__ int32_t page_of_lane(int32_t base) const {
    const int32_t slot = min(max(base + place.slot_of_step(place.index), seen.first), seen.last);
    return p.cache
        .block_table[tile.request * p.cache.block_table_stride + (slot >> p.cache.page_shift)];
  }

  __device__ int64_t slot_in_page(int32_t base, int step) const {
    return (base + place.slot_of_step(step)) & ((1 << p.cache.page_shift) - 1);
  }

  /// parts[r][s]: this lane's part of the dot product of row r with the slot of step s.
  __device__ void score(int32_t base, int32_t page_lane, float (&parts)[kRows][kLanes]) const {
#pragma unroll
    for (int s = 0; s < kLanes; ++s) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) parts[r][s] = 0;
      const int64_t page = __shfl_sync(kAllLanes, page_lane, s, kLanes);
      if (!has_slot(reads_key, base, s)) continue;
      const Vec8 k = load_stored8(
          key + page * p.cache.key_page_stride + slot_in_page(base, s) * p.cache.key_slot_stride,
          p.cache);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
          parts[r][s] = i == 0 ? __fmul_rn(rows[r].query.x[0], k.x[0])
                               : __fmaf_rn(rows[r].query.x[i], k.x[i], parts[r][s]);
        }
      }
    }
  }

  /// Takes 32 scores into the row's state; returns the weight of this lane's slot.
  __device__ float weigh(RowState& row, float dot, int32_t slot) const {
    float logit = plain_logit(p, dot);
    if (has_modifiers(p)) logit = modified_logit(p, row.scored, dot, slot);
    float score_log2 = row.scored.sees(slot) ? logit : -INFINITY;
    const HiddenSlots hidden{p, tile, kv_head};
    if (hidden.exist() && row.scored.sees(slot)) {
      score_log2 = hidden.apply(row.scored, slot, logit);
    }
    const float max_log2 = fmaxf(row.max_log2, warp_max(score_log2));
    // As long as nothing was visible, any finite shift keeps the exponents from becoming NaN.
    const float shift = max_log2 == -INFINITY ? 0.0f : max_log2;
    const float rescale = exp2_approx(__fsub_rn(row.max_log2, shift));
    const float weight = exp2_approx(__fsub_rn(score_log2, shift));
    row.max_log2 = max_log2;
    row.sum = __fmaf_rn(row.sum, rescale, weight);
#pragma unroll
    for (int i = 0; i < kVector; ++i) row.output.x[i] = __fmul_rn(row.output.x[i], rescale);
    return weight;
  }

  __device__ void accumulate(int32_t base, int32_t page_lane, const float (&weights)[kRows]) {
#pragma unroll
    for (int s = 0; s < kLanes; ++s) {
      const int64_t page = __shfl_sync(kAllLanes, page_lane, s, kLanes);
      float w[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) w[r] = __shfl_sync(kAllLanes, weights[r], s, kLanes);
      // A slot nobody sees must not be touched: 0 * NaN is NaN.
      if (!has_slot(reads_value, base, s)) continue;
      const Vec8 v = load_stored8(value + page * p.cache.value_page_stride +
                                      slot_in_page(base, s) * p.cache.value_slot_stride,
                                  p.cache);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
          rows[r].output.x[i] = __fmaf_rn(w[r], v.x[i], rows[r].output.x[i]);
        }
      }
    }
  }

  __device__ void take_scale() {
    if (p.cache.key_scale == nullptr || !has_one_scale(p.cache)) return;
    const int64_t index = scale_index(p.cache, 0, 0, kv_head);
    key_scale = p.cache.key_scale[index];
    value_scale = p.cache.value_scale[index];
  }

  /// The scale of this lane's slot, whose page is `page`; 1 where it has none to read.
  __device__ float scale_of_lane(const float* scales, int32_t base, int32_t page) const {
    const int32_t slot = base + place.slot_of_step(place.index);
    if (scales == nullptr || slot < seen.first || slot > seen.last) return 1;
    return scales[scale_index(p.cache, page, slot_in_page(base, place.index), kv_head)];
  }

  __device__ void take_tile(int32_t base) {
    const int32_t page_lane = page_of_lane(base);
    float parts[kRows][kLanes], weights[kRows];
    if (kHasScales && !has_one_scale(p.cache)) {
      key_scale = scale_of_lane(p.cache.key_scale, base, page_lane);
      value_scale = scale_of_lane(p.cache.value_scale, base, page_lane);
    }
    score(base, page_lane, parts);
    const int32_t slot = base + place.slot_of_step(place.index);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float dot = transpose_sum<kLanes>(parts[r], place.lane);
      if constexpr (kHasScales) dot = __fmul_rn(dot, key_scale);
      weights[r] = weigh(rows[r], dot, slot);
      if constexpr (kHasScales) weights[r] = __fmul_rn(weights[r], value_scale);
    }
    accumulate(base, page_lane, weights);
  }

  /// Adds up what the lanes hold of a row; afterwards every group holds the whole.
  __device__ void gather(RowState& row) const {
    row.sum = warp_sum<1>(row.sum);
#pragma unroll
    for (int i = 0; i < kVector; ++i) row.output.x[i] = warp_sum<kLanes>(row.output.x[i]);
  }

  __device__ void write(int r, const RowState& row) const {
    if (place.group != 0) return;
    write_row<T>(p, row_address(p, tile, kv_head, r), row, place.index);
  }
};

/// Block: one warp. Grid: x row tiles (see batch.cuh), y KV heads.
template <class T, class Stored, int kLanes, int kRows>
__global__ void __launch_bounds__(kWarpLanes, 1) attend_reference_kernel(const AttendParams p) {
  const RowTile tile = find_row_tile(p, blockIdx.x, kRows);
  if (tile.row_count <= 0) return;
  WarpAttention<T, Stored, kLanes, kRows> attention{p, tile, static_cast<int32_t>(blockIdx.y)};
  attention.begin();
  attention.template take_tiles<1>(0);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r >= tile.row_count) break;
    attention.gather(attention.rows[r]);
    attention.write(r, attention.rows[r]);
  }
}

}  // namespace kvattn
