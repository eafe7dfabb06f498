// Attention for requests with one query whose KV head serves more query heads than the rows of a
// warp hold (attend_decode.cuh, whose bits it gives).
//
// Version 1 ("decode"): a block has a set of kDecodeWarps warps for each kRows heads. What
// attend_decode_kernel reads once for each set comes into shared memory once for all of them: K and
// V of one tile for each warp of a set, K of the next tiles while V of these is used, the scales of
// their slots, and the entries of the block table. Warp w of every set has tile w of the round, and
// with it the same share of the slots as there.
#pragma once

#include "impl/kernels/attend_decode.cuh"
#include "impl/kernels/page_window.cuh"
#include "impl/kernels/tensor_core.cuh"

namespace kvattn {

constexpr int kDecodeSetsMax = 4;
constexpr int kDecodeSetThreads = kDecodeWarps * kWarpLanes;
constexpr int kRoundSlots = kDecodeWarps * int{kWarpTileSlots};

/// What lies in shared memory, for kSets sets: vectors of eight elements of K and V, the scales of
/// slots, and Q in halves that lie apart, so that neighbouring lanes use neighbouring banks.
template <class Stored, int kLanes, int kRows>
struct DecodeRound {
  struct Vector {
    Stored x[kVector];
  };
  alignas(16) Vector key[kDecodeWarps][kWarpTileSlots][kLanes];
  alignas(16) Vector value[kDecodeWarps][kWarpTileSlots][kLanes];
  float key_scale[kDecodeWarps][kWarpTileSlots], value_scale[kDecodeWarps][kWarpTileSlots];
  float4 query_low[kDecodeSetsMax * kRows][kLanes], query_high[kDecodeSetsMax * kRows][kLanes];
};

template <class T, class Stored, int kLanes, int kRows>
struct GroupAttention : WarpAttention<T, Stored, kLanes, kRows> {
  using Base = WarpAttention<T, Stored, kLanes, kRows>;
  using Base::kHasScales, Base::key, Base::key_scale, Base::p, Base::place, Base::reads_key,
      Base::reads_value, Base::rows, Base::seen, Base::tile, Base::value, Base::value_scale;
  using Round = DecodeRound<Stored, kLanes, kRows>;

  Round& round;
  PageWindow<kDecodeSetThreads> pages;
  int warp = threadIdx.x / kWarpLanes % kDecodeWarps, set = threadIdx.x / kDecodeSetThreads;
  int sets = blockDim.x / kDecodeSetThreads;

  /// First slot of this warp's tile.
  __device__ int32_t base_of(int32_t index) const {
    return index * kRoundSlots + warp * int{kWarpTileSlots};
  }

  /// Row w of a set by its warp w.
  __device__ void share_queries() const {
    static_assert(kRows <= kDecodeWarps);
    if (warp >= kRows || place.group != 0) return;
    const Vec8 q = this->load_query(warp);
    const int row = set * kRows + warp;
    round.query_low[row][place.index] = make_float4(q.x[0], q.x[1], q.x[2], q.x[3]);
    round.query_high[row][place.index] = make_float4(q.x[4], q.x[5], q.x[6], q.x[7]);
  }
  __device__ Vec8 query_of(int r) const {
    const int row = set * kRows + r;
    const float4 a = round.query_low[row][place.index], b = round.query_high[row][place.index];
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
  }

  /// Makes available what round `index` needs of the block table. Every thread calls.
  __device__ void find_pages(int32_t index) {
    const int32_t shift = p.cache.page_shift, first = index * kRoundSlots;
    pages.move(p.cache.block_table + tile.request * p.cache.block_table_stride,
               max(first, seen.first) >> shift, min(first + kRoundSlots - 1, seen.last) >> shift,
               seen.last >> shift);
  }

  /// The sets share the steps of a tile. Slots that nobody sees are not read.
  __device__ void copy_keys(int32_t index) const {
    const int32_t base = base_of(index);
#pragma unroll 1
    for (int s = set; s < kLanes; s += sets) {
      if (!this->has_slot(reads_key, base, s)) continue;
      const int64_t page = pages.page((base + place.slot_of_step(s)) >> p.cache.page_shift);
      copy_async_narrow<sizeof(typename Round::Vector)>(
          shared_address(&round.key[warp][place.slot_of_step(s)][place.index]),
          key + page * p.cache.key_page_stride +
              this->slot_in_page(base, s) * p.cache.key_slot_stride,
          false);
    }
    if (kHasScales && set == 0) copy_scale(p.cache.key_scale, round.key_scale[warp], base);
  }
  __device__ void copy_values(int32_t index) const {
    const int32_t base = base_of(index);
#pragma unroll 1
    for (int s = set; s < kLanes; s += sets) {
      if (!this->has_slot(reads_value, base, s)) continue;
      const int64_t page = pages.page((base + place.slot_of_step(s)) >> p.cache.page_shift);
      copy_async_narrow<sizeof(typename Round::Vector)>(
          shared_address(&round.value[warp][place.slot_of_step(s)][place.index]),
          value + page * p.cache.value_page_stride +
              this->slot_in_page(base, s) * p.cache.value_slot_stride,
          false);
    }
    if (kHasScales && set == 0) copy_scale(p.cache.value_scale, round.value_scale[warp], base);
  }

  /// Of the slot that this lane weighs.
  __device__ bool has_scale(const float* scales, int32_t base) const {
    const int32_t slot = base + place.slot_of_step(place.index);
    return scales != nullptr && !has_one_scale(p.cache) && slot >= seen.first && slot <= seen.last;
  }
  __device__ void copy_scale(const float* scales, float* to, int32_t base) const {
    if (!has_scale(scales, base)) return;
    const int own = place.slot_of_step(place.index);
    const int64_t page = pages.page((base + own) >> p.cache.page_shift);
    copy_async_narrow<sizeof(float)>(
        shared_address(to + own),
        scales + scale_index(p.cache, page, this->slot_in_page(base, place.index), this->kv_head),
        false);
  }
  /// `shared` when all slots have the same.
  __device__ float scale_of_slot(const float* scales, const float* copied, float shared,
                                 int32_t base) const {
    if (scales == nullptr || has_one_scale(p.cache)) return shared;
    return has_scale(scales, base) ? copied[place.slot_of_step(place.index)] : 1.0f;
  }

  /// As Base::take_tile up to the weights, row by row: K is near, and the parts of several rows do
  /// not fit into the 128 registers of a thread.
  __device__ void score_rows(int32_t index, float (&weights)[kRows]) {
    const int32_t base = base_of(index), slot = base + place.slot_of_step(place.index);
    const float scale = scale_of_slot(p.cache.key_scale, round.key_scale[warp], key_scale, base);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float parts[kLanes];
      multiply_keys(base, query_of(r), parts);
      float dot = transpose_sum<kLanes>(parts, place.lane);
      if constexpr (kHasScales) dot = __fmul_rn(dot, scale);
      weights[r] = this->weigh(rows[r], dot, slot);
    }
  }
  __device__ void multiply_keys(int32_t base, const Vec8& query, float (&parts)[kLanes]) const {
#pragma unroll
    for (int s = 0; s < kLanes; ++s) {
      parts[s] = 0;
      if (!this->has_slot(reads_key, base, s)) continue;
      const Vec8 k = load_stored8(round.key[warp][place.slot_of_step(s)][place.index].x, p.cache);
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        parts[s] = i == 0 ? __fmul_rn(query.x[0], k.x[0]) : __fmaf_rn(query.x[i], k.x[i], parts[s]);
      }
    }
  }

  __device__ void add_values(int32_t index, float (&weights)[kRows]) {
    const int32_t base = base_of(index);
    if constexpr (kHasScales) {
      const float scale =
          scale_of_slot(p.cache.value_scale, round.value_scale[warp], value_scale, base);
#pragma unroll
      for (int r = 0; r < kRows; ++r) weights[r] = __fmul_rn(weights[r], scale);
    }
#pragma unroll
    for (int s = 0; s < kLanes; ++s) {
      float w[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) w[r] = __shfl_sync(kAllLanes, weights[r], s, kLanes);
      if (!this->has_slot(reads_value, base, s)) continue;
      const Vec8 v = load_stored8(round.value[warp][place.slot_of_step(s)][place.index].x, p.cache);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
          rows[r].output.x[i] = __fmaf_rn(w[r], v.x[i], rows[r].output.x[i]);
        }
      }
    }
  }

  /// Whether the warp has rows that see something of its tile.
  __device__ bool has_work(int32_t index) const {
    const int32_t base = base_of(index);
    return tile.row_count > 0 && base <= seen.last && base + int{kWarpTileSlots} > seen.first;
  }

  /// All slots that are seen; every thread of the block calls.
  __device__ void take_rounds() {
    share_queries();
    int32_t index = seen.first / kRoundSlots;
    const int32_t last = seen.last / kRoundSlots;
    find_pages(index);
    copy_keys(index);
    commit_copies();
    copy_values(index);
    commit_copies();
    for (; index <= last; ++index) {
      float weights[kRows];
      const bool works = has_work(index);
      wait_copies<1>();
      __syncthreads();  // everybody's copies of K have arrived
      if (works) score_rows(index, weights);
      __syncthreads();  // nobody reads K any more
      if (index < last) {
        find_pages(index + 1);
        copy_keys(index + 1);
      }
      commit_copies();
      wait_copies<1>();
      __syncthreads();  // and of V
      if (works) add_values(index, weights);
      __syncthreads();
      if (index < last) copy_values(index + 1);
      commit_copies();
    }
    wait_copies<0>();
  }
};

/// Block: kDecodeWarps warps for each set, up to kDecodeSetsMax. Grid: x row tiles (see batch.cuh),
/// y KV heads, z splits.
template <class T, class Stored, int kLanes, int kRows>
__global__ void __launch_bounds__(kDecodeSetsMax* kDecodeSetThreads)
    attend_decode_group_kernel(const AttendParams p) {
  using Attention = GroupAttention<T, Stored, kLanes, kRows>;
  using States = WarpStates<kLanes>;
  static_assert(kDecodeSetsMax * sizeof(States) <= sizeof(typename Attention::Round));
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ int32_t pages[kDecodeSetThreads];
  const int sets = blockDim.x / kDecodeSetThreads, set = threadIdx.x / kDecodeSetThreads;
  const BlockWork work = find_block_work(p, sets * kRows);
  const int32_t splits = work.splits, split = blockIdx.z;
  if (work.tile.row_count <= 0 || split >= splits) return;
  RowTile tile = work.tile;  // of the set
  tile.first_row += set * kRows;
  tile.row_count = min(tile.row_count - set * kRows, kRows);
  Attention attention{{p, tile, static_cast<int32_t>(blockIdx.y)},
                      *reinterpret_cast<typename Attention::Round*>(shared),
                      {pages}};
  attention.begin(work.hull);
  if (splits > 1) attention.clip(slots_of_split(p, split));
  if (attention.seen.last >= 0) attention.take_rounds();

  // Row by row, in the place of K and V, which nobody reads any more.
  States& states = reinterpret_cast<States*>(shared)[set];
  const Place<kLanes> place = attention.place;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    attention.gather(attention.rows[r]);
    states.put(attention.warp, place, attention.rows[r]);
    __syncthreads();
    if (attention.warp == 0 && r < tile.row_count) {
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

}  // namespace kvattn
