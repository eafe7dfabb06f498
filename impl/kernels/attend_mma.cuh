// Attention on tensor cores, fp16 and bf16.
//
// Version 1 ("prefill"): the scheme of FlashAttention-2 over a paged cache. A block takes
// 16 * kWarps packed query rows, 16 to a warp. K and V come in tiles of kTile slots by asynchronous
// copies, the next tile's while this one is used. Scores, softmax and O stay in registers in the
// layout of the products, so P feeds the second product without passing through memory.
//
// Version 2 ("invariant"): the slots are also cut into splits of a fixed size, one block each, as
// decode does; partial results go to the workspace, and one merge from left to right adds them up,
// for one query or a thousand. A query has the same bits in prefill, any chunk, decode and verify.
//
// Tiles start at multiples of kTile and are visited in ascending order; slots that a row does not
// see have weight zero, and tiles that none of a warp's rows see, be it for a mask tensor, and
// steps that nobody in the block sees, are left out, which changes no bit. So a query's bits depend
// on its request only, and not on how many warps share the block.
//
// Version 3 ("decode_grouped"): one query for each request, whose heads of a group are the rows of
// the products, divided as version 2.
#pragma once

#include "impl/kernels/batch.cuh"
#include "impl/kernels/launch.h"
#include "impl/kernels/score.cuh"
#include "impl/kernels/splits.cuh"
#include "impl/kernels/tensor_core.cuh"
#include "impl/kernels/tile_softmax.cuh"
#include "impl/kernels/warp.cuh"

namespace kvattn {

constexpr int kMmaRows = 16;  // of one warp
constexpr int kMmaStep = 16;  // slots of one P.V product
constexpr int kMmaStages = 2;

/// Fewer slots to a tile for wide heads, whose O alone fills half the registers.
template <int kDim>
constexpr int kMmaTile = mma_tile_slots(kDim);

/// Q, then kMmaStages tiles of K and of V.
template <int kDim, int kWarps>
constexpr int kMmaSharedBytes = (kMmaRows * kWarps + 2 * kMmaStages * kMmaTile<kDim>)*kDim * 2;

/// The entry of a block table that was looked up last: neighbouring slots share it.
struct HeldPage {
  int32_t index = -1, page = 0;
  __device__ int64_t find(const int32_t* pages, int32_t wanted) {
    if (wanted != index) page = pages[index = wanted];
    return page;
  }
};

template <class T, int kDim, int kWarps>
struct MmaAttention {
  static constexpr int kTile = kMmaTile<kDim>;
  static constexpr int kThreads = kWarps * kWarpLanes;
  static constexpr int kChunks = kDim / kVector;
  static constexpr int kSlotTiles = kTile / 8;  // products along the slots of a score tile
  static constexpr int kDimTiles = kDim / 8;    // products along the dimensions of O
  static constexpr int kDimSteps = kDim / 16;
  static constexpr bool kKeepsQuery = kDim <= 128;  // Q in registers for the whole loop
  using Rows = SwizzledRows<kDim>;

  const AttendParams& p;
  const RowTile& tile;
  int32_t kv_head;
  uint32_t shared;
  int lane = threadIdx.x % kWarpLanes, warp = threadIdx.x / kWarpLanes;
  Visible seen;       // hull over the block's rows
  Visible warp_seen;  // over this warp's
  uint32_t query[kKeepsQuery ? kDimSteps : 1][4];
  // A lane holds parts of two rows: lane / 4 and lane / 4 + 8 of its warp.
  ScoredRow rows[2];
  float max_log2[2], sum[2];
  float output[kDimTiles][4];

  __device__ RowStates<kDimTiles> states() { return {max_log2, sum, output}; }
  __device__ Rows query_rows() const { return {shared}; }
  __device__ Rows key_rows(int stage) const {
    return {shared + (kMmaRows * kWarps + stage * kTile) * kDim * 2};
  }
  __device__ Rows value_rows(int stage) const { return key_rows(kMmaStages + stage); }

  __device__ void begin(Visible part) { begin(visible_slots(p, tile), part); }
  /// `hull` is what the tile's rows see between them.
  __device__ void begin(Visible hull, Visible part) {
    seen = intersection(hull, part);
    warp_seen = intersection(slots_of_warp(), part);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rows[half] = scored_row(p, tile, kv_head, warp * kMmaRows + lane / 4 + 8 * half, hull);
      rows[half].visible = intersection(rows[half].visible, part);
      max_log2[half] = -INFINITY;
      sum[half] = 0;
    }
#pragma unroll
    for (int n = 0; n < kDimTiles; ++n) {
#pragma unroll
      for (int j = 0; j < 4; ++j) output[n][j] = 0;
    }
  }

  __device__ Visible slots_of_warp() const {
    const int first = warp * kMmaRows;
    if (first >= tile.row_count) return {0, -1};
    if (tile.query_length == 1) return seen;
    const int last = min(first + kMmaRows, tile.row_count) - 1;
    return visible_slots(p, tile, (tile.first_row + first) / p.group,
                         (tile.first_row + last) / p.group);
  }

  __device__ void copy_query() const {
#pragma unroll 1
    for (int i = threadIdx.x; i < kMmaRows * kWarps * kChunks; i += kThreads) {
      const int row = i / kChunks, chunk = i % kChunks;
      const bool exists = row < tile.row_count && chunk * kVector < p.head_dim;
      const RowAddress at = row_address(p, tile, kv_head, exists ? row : 0);
      const T* source = static_cast<const T*>(p.query) + at.token * p.query_token_stride +
                        at.head * p.query_head_stride + (exists ? chunk * kVector : 0);
      copy_async(query_rows().chunk(row, chunk), source, !exists);
    }
  }

  /// Slots of the tile at `base` that are worth a product, rounded up to whole steps.
  __device__ int slots_used(int32_t base) const {
    return min(kTile, (seen.last - base) / kMmaStep * kMmaStep + kMmaStep);
  }

  /// Whether mask or tree hide the tile at `base` from the warp's rows.
  __device__ bool is_masked(int32_t base) const {
    return hides_tile({p, tile, kv_head}, rows, base, slots_used(base));
  }
  /// From everybody's. Every thread calls.
  __device__ bool is_masked_for_all(int32_t base) const {
    const bool may_be = p.mask.data != nullptr || p.tree.words != nullptr;
    return may_be && __syncthreads_and(is_masked(base)) != 0;
  }

  /// Slots that nobody sees are not read, and become zeros: 0 * NaN is NaN.
  __device__ void copy_tile(int32_t base, int stage) const {
    if (is_masked_for_all(base)) return;
    constexpr bool kKeepsChunk = kThreads % kChunks == 0;  // of every row that a thread copies
    const PagedParams& cache = p.cache;
    const T* key = static_cast<const T*>(cache.key) + kv_head * cache.key_head_stride;
    const T* value = static_cast<const T*>(cache.value) + kv_head * cache.value_head_stride;
    const int32_t* pages = cache.block_table + tile.request * cache.block_table_stride;
    const int end = slots_used(base) * kChunks;
    HeldPage held;
#pragma unroll 1
    for (uint32_t i = threadIdx.x; static_cast<int>(i) < end; i += kThreads) {
      const int row = i / kChunks, chunk = (kKeepsChunk ? threadIdx.x : i) % kChunks;
      const int32_t slot = base + row;
      const bool exists = slot >= seen.first && slot <= seen.last;
      const bool has_key = exists && chunk * kVector < p.head_dim;
      const bool has_value = exists && chunk * kVector < p.value_dim;
      int64_t key_offset = 0, value_offset = 0;
      if (has_key || has_value) {
        const int64_t page = held.find(pages, slot >> cache.page_shift);
        const int64_t place = slot & ((1 << cache.page_shift) - 1);
        key_offset = page * cache.key_page_stride + place * cache.key_slot_stride;
        value_offset = page * cache.value_page_stride + place * cache.value_slot_stride;
        key_offset += chunk * kVector;
        value_offset += chunk * kVector;
      }
      copy_async(key_rows(stage).chunk(row, chunk), key + key_offset, !has_key);
      copy_async(value_rows(stage).chunk(row, chunk), value + value_offset, !has_value);
    }
  }

  __device__ void load_query_step(int step, uint32_t (&a)[4]) const {
    load_matrices(query_rows().chunk(warp * kMmaRows + lane % 16, step * 2 + lane / 16), a);
  }
  __device__ void load_query() {
    if constexpr (kKeepsQuery) {
#pragma unroll
      for (int k = 0; k < kDimSteps; ++k) load_query_step(k, query[k]);
    }
  }

  __device__ void take_query_step(int step, uint32_t (&a)[4]) const {
    if constexpr (kKeepsQuery) {
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = query[step][i];
    } else {
      load_query_step(step, a);
    }
  }

  /// scores[n] = Q K^T for slots n * 8 ... n * 8 + 7 of the tile.
  __device__ void multiply_keys(int stage, int used, float (&scores)[kSlotTiles][4]) const {
    const Rows keys = key_rows(stage);
#pragma unroll
    for (int n = 0; n < kSlotTiles; ++n) {
#pragma unroll
      for (int j = 0; j < 4; ++j) scores[n][j] = 0;
    }
#pragma unroll
    for (int k = 0; k < kDimSteps; ++k) {
      if (k * 16 >= p.head_dim) break;
      uint32_t a[4];
      take_query_step(k, a);
#pragma unroll
      for (int n = 0; n < kSlotTiles; n += 2) {
        if (n * 8 >= used) break;
        uint32_t b[4];
        load_matrices(keys.chunk(n * 8 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2), b);
        multiply<T>(scores[n], a, b[0], b[1]);
        multiply<T>(scores[n + 1], a, b[2], b[3]);
      }
    }
  }

  /// Scores to base-2 logits, hidden slots to -inf.
  __device__ void mask(int32_t base, int used, float (&scores)[kSlotTiles][4]) const {
    const int32_t last = base + used - 1;
    const bool all_visible = __all_sync(
        kAllLanes, used == kTile && rows[0].sees_all(base, last) && rows[1].sees_all(base, last));
    const bool modified = has_modifiers(p);
#pragma unroll
    for (int n = 0; n < kSlotTiles; ++n) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const ScoredRow& row = rows[j / 2];
        const int32_t slot = base + n * 8 + lane % 4 * 2 + j % 2;
        float logit = plain_logit(p, scores[n][j]);
        if (modified) logit = modified_logit(p, row, scores[n][j], slot);
        scores[n][j] = all_visible || row.sees(slot) ? logit : -INFINITY;
      }
    }
    if (const HiddenSlots hidden{p, tile, kv_head}; hidden.exist()) hide(hidden, base, scores);
  }

  __device__ void hide(const HiddenSlots& hidden, int32_t base,
                       float (&scores)[kSlotTiles][4]) const {
#pragma unroll
    for (int n = 0; n < kSlotTiles; ++n) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const ScoredRow& row = rows[j / 2];
        const int32_t slot = base + n * 8 + lane % 4 * 2 + j % 2;
        if (row.sees(slot)) scores[n][j] = hidden.apply(row, slot, scores[n][j]);
      }
    }
  }

  __device__ void multiply_values(int stage, int used, const float (&weights)[kSlotTiles][4]) {
    const Rows values = value_rows(stage);
#pragma unroll
    for (int s = 0; s < kTile / kMmaStep; ++s) {
      if (s * kMmaStep >= used) break;
      const float(&low)[4] = weights[2 * s];
      const float(&high)[4] = weights[2 * s + 1];
      const uint32_t a[4] = {round_pair(low[0], low[1], T()), round_pair(low[2], low[3], T()),
                             round_pair(high[0], high[1], T()), round_pair(high[2], high[3], T())};
#pragma unroll
      for (int n = 0; n < kDimTiles; n += 2) {
        if (n * 8 >= p.value_dim) break;
        uint32_t b[4];
        load_matrices_transposed(values.chunk(s * kMmaStep + lane % 16, n + lane / 16), b);
        multiply<T>(output[n], a, b[0], b[1]);
        multiply<T>(output[n + 1], a, b[2], b[3]);
      }
    }
  }

  /// A tile that none of the warp's rows see would add zeros.
  __device__ bool is_hidden(int32_t base) const {
    return base > warp_seen.last || base + kTile <= warp_seen.first;
  }

  __device__ void take_tile(int32_t base, int stage) {
    if (is_hidden(base) || is_masked(base)) return;
    const int used = slots_used(base);
    float scores[kSlotTiles][4];
    multiply_keys(stage, used, scores);
    mask(base, used, scores);
    weigh_tile(scores, states());
    multiply_values(stage, used, scores);
  }

  /// `split` is -1 when the block has all of its rows' slots.
  __device__ void write(int32_t split) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      sum[half] += __shfl_xor_sync(kAllLanes, sum[half], 1);
      sum[half] += __shfl_xor_sync(kAllLanes, sum[half], 2);
      const int row = warp * kMmaRows + lane / 4 + 8 * half;
      if (row >= tile.row_count) continue;
      const RowAddress at = row_address(p, tile, kv_head, row);
      if (split >= 0) {
        write_part(half, partial_index(p, at.token, at.head) + split);
        continue;
      }
      const RowEnd end = end_row(p, at.head, max_log2[half], sum[half]);
      stage_output(half, row, end.factor);
      if (lane % 4 == 0) {
        p.lse[at.token * p.lse_token_stride + at.head * p.lse_head_stride] = end.lse;
      }
    }
    if (split < 0) write_output();
  }

  /// O takes the place of this warp's rows of Q, which are not needed any more.
  __device__ void stage_output(int half, int row, float factor) const {
#pragma unroll
    for (int n = 0; n < kDimTiles; ++n) {
      if (n * 8 >= p.value_dim) break;
      // Adding zero is what the merge of one split does: it turns -0 into +0.
      store_word(query_rows().chunk(row, n) + lane % 4 * 4,
                 round_pair(__fmul_rn(__fadd_rn(output[n][2 * half], 0.0f), factor),
                            __fmul_rn(__fadd_rn(output[n][2 * half + 1], 0.0f), factor), T()));
    }
  }

  /// In vectors, so that whole sectors are written.
  __device__ void write_output() const {
    __syncwarp();
#pragma unroll 1
    for (int i = lane; i < kMmaRows * kChunks; i += kWarpLanes) {
      const int row = warp * kMmaRows + i / kChunks, chunk = i % kChunks;
      if (row >= tile.row_count || chunk * kVector >= p.value_dim) continue;
      const RowAddress at = row_address(p, tile, kv_head, row);
      T* target = static_cast<T*>(p.output) + at.token * p.output_token_stride +
                  at.head * p.output_head_stride + chunk * kVector;
      *reinterpret_cast<uint4*>(target) = load_chunk(query_rows().chunk(row, chunk));
    }
  }

  /// A split that saw nothing leaves an empty state: the merge reads every split.
  __device__ void write_part(int half, int64_t index) const {
    float* target = p.partial_output + index * p.value_dim + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < kDimTiles; ++n) {
      if (n * 8 >= p.value_dim) break;
      *reinterpret_cast<float2*>(target + n * 8) =
          make_float2(output[n][2 * half], output[n][2 * half + 1]);
    }
    if (lane % 4 == 0) {
      *reinterpret_cast<float2*>(p.partial_state + 2 * index) =
          make_float2(max_log2[half], sum[half]);
    }
  }
};

/// Block: kWarps warps. Grid: x row tiles (see batch.cuh), y KV heads, z splits.
template <class T, int kDim, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarpLanes, 1) attend_mma_kernel(const AttendParams p) {
  extern __shared__ __align__(128) uint8_t shared[];
  const RowTile tile = find_row_tile(p, blockIdx.x, kMmaRows * kWarps);
  if (tile.row_count <= 0) return;
  const int32_t splits = p.is_divided ? split_count(p, tile.request) : 1, split = blockIdx.z;
  if (split >= splits) return;
  using Attention = MmaAttention<T, kDim, kWarps>;
  Attention attention{p, tile, static_cast<int32_t>(blockIdx.y), shared_address(shared)};
  attention.begin(splits > 1 ? slots_of_split(p, split) : Visible{0, INT32_MAX});
  const Visible seen = attention.seen;
  if (seen.last >= 0) {
    constexpr int32_t kTile = Attention::kTile;
    const int32_t end = seen.last / kTile + 1;
    int32_t index = seen.first / kTile;
    attention.copy_query();
    attention.copy_tile(index * kTile, 0);
    commit_copies();
    for (int stage = 0; index < end; ++index, stage ^= 1) {
      if (index + 1 < end) attention.copy_tile((index + 1) * kTile, stage ^ 1);
      commit_copies();
      wait_copies<1>();
      __syncthreads();  // everybody's copies of this tile have arrived
      if (index == seen.first / kTile) attention.load_query();
      attention.take_tile(index * kTile, stage);
      __syncthreads();  // nobody reads this stage any more; it is the next copy's target
    }
  }
  attention.write(splits > 1 ? split : -1);
}

}  // namespace kvattn
