// Attention over a latent cache on tensor cores, fp16 and bf16: V is the first kDimV dimensions of
// K, and all query heads share one row (multi-head latent attention in its absorbed form).
//
// Version 1 ("latent"): a block takes 16 packed query rows, 16 heads of one query where there are
// as many. Rows are too wide for one warp's registers, so the warps of a block share them: for the
// scores each warp has a part of the tile's slots, for O each has a part of the dimensions. Scores
// become weights where they are made, and weights cross to the other warps through shared memory.
// K is read once, and V never: its rows are already there.
//
// Version 2: 64 rows to a block of eight warps, whose O fills half of a multiprocessor's registers.
// Each 16 rows are scored by two warps; each warp has 64 dimensions of all rows. 64 heads read the
// cache once instead of four times. Version 1 goes on to serve requests of up to 16 rows: its
// blocks take less shared memory.
//
// Slots are cut into splits of a fixed size, one block each, and partial results are added up from
// left to right by merge_latent_kernel. Tiles start at multiples of kLatentTile and are visited in
// ascending order; what nobody sees weighs zero. A row's sum is kept for each eight slots of the
// tile, whoever scores them, and added up in their order at the end. So a query has the same bits
// in both versions, in prefill, any chunk, decode and verify, alone and in any batch.
#pragma once

#include "impl/kernels/latent_shares.cuh"
#include "impl/kernels/page_window.cuh"
#include "impl/kernels/splits.cuh"
#include "impl/kernels/tensor_core.cuh"
#include "impl/kernels/tile_softmax.cuh"

namespace kvattn {

template <class T, int kRowTiles>
struct LatentAttention {
  using Shares = LatentShares<kRowTiles>;
  static constexpr int kRows = Shares::kRows, kThreads = Shares::kThreads;
  static constexpr int kParts = Shares::kParts, kPartTiles = Shares::kPartTiles;
  static constexpr int kDimTiles = Shares::kDimTiles;
  static constexpr int kChunks = kLatentDimK / kVector;
  using Rows = SwizzledRows<kLatentDimK>;

  const AttendParams& p;
  const RowTile& tile;
  int32_t kv_head;
  uint32_t shared;
  LatentExchange<kRowTiles>& exchange;
  PageWindow<kThreads> pages;
  int lane = threadIdx.x % kWarpLanes, warp = threadIdx.x / kWarpLanes;
  int part = warp % kParts;      // of the tile's slots, which the warp scores
  int row_tile = warp / kParts;  // for these rows
  Visible seen;                  // hull over the block's rows
  Visible tile_seen;             // over those of the row tile
  // A lane holds parts of two of them: lane / 4 and lane / 4 + 8.
  ScoredRow rows[2];
  float max_log2[2], sum[2][kPartTiles];
  float output[kRowTiles][kDimTiles][4];  // of all rows, of the warp's dimensions

  __device__ Rows query_rows() const { return {shared}; }
  __device__ Rows key_rows(int stage) const {
    return {shared + (kRows + stage * kLatentTile) * kLatentDimK * 2};
  }
  /// Of the block's rows, those that the lane scores.
  __device__ int row_of(int half) const { return row_tile * kLatentRowTile + lane / 4 + 8 * half; }

  /// `hull` is what the tile's rows see between them.
  __device__ void begin(Visible hull, Visible part_of_slots) {
    seen = intersection(hull, part_of_slots);
    tile_seen = intersection(slots_of_row_tile(), part_of_slots);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rows[half] = scored_row(p, tile, kv_head, row_of(half), hull);
      rows[half].visible = intersection(rows[half].visible, part_of_slots);
      max_log2[half] = -INFINITY;
#pragma unroll
      for (int n = 0; n < kPartTiles; ++n) sum[half][n] = 0;
    }
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int n = 0; n < kDimTiles; ++n) {
#pragma unroll
        for (int j = 0; j < 4; ++j) output[m][n][j] = 0;
      }
    }
  }

  __device__ Visible slots_of_row_tile() const {
    const int first = row_tile * kLatentRowTile;
    if (first >= tile.row_count) return {0, -1};
    if (tile.query_length == 1) return seen;
    const int last = min(first + kLatentRowTile, tile.row_count) - 1;
    return visible_slots(p, tile, (tile.first_row + first) / p.group,
                         (tile.first_row + last) / p.group);
  }

  __device__ void copy_query() const {
#pragma unroll 1
    for (int i = threadIdx.x; i < kRows * kChunks; i += kThreads) {
      const int row = i / kChunks, chunk = i % kChunks;
      const bool exists = row < tile.row_count;
      const RowAddress at = row_address(p, tile, kv_head, exists ? row : 0);
      const T* source = static_cast<const T*>(p.query) + at.token * p.query_token_stride +
                        at.head * p.query_head_stride + chunk * kVector;
      copy_async(query_rows().chunk(row, chunk), source, !exists);
    }
  }

  /// Slots of the tile at `base` that are worth a product, rounded up to whole steps.
  __device__ int slots_used(int32_t base) const {
    return min(kLatentTile, (seen.last - base) / kLatentStep * kLatentStep + kLatentStep);
  }

  /// Whether the row tile sees nothing of the tile at `base`: it would add zeros.
  __device__ bool is_hidden(int32_t base) const {
    return base > tile_seen.last || base + kLatentTile <= tile_seen.first ||
           hides_tile({p, tile, kv_head}, rows, base, slots_used(base));
  }
  /// Whether mask or tree hide it from everybody. Every thread calls.
  __device__ bool is_hidden_for_all(int32_t base) const {
    const bool may_be = p.mask.data != nullptr || p.tree.words != nullptr;
    return may_be && __syncthreads_and(is_hidden(base)) != 0;
  }

  /// Slots that nobody sees are not read, and become zeros: 0 * NaN is NaN.
  __device__ void copy_tile(int32_t base, int stage) {
    if (is_hidden_for_all(base)) return;
    const PagedParams& cache = p.cache;
    const T* key = static_cast<const T*>(cache.key) + kv_head * cache.key_head_stride;
    const int32_t tile_last = min(base + slots_used(base) - 1, seen.last);
    pages.move(cache.block_table + tile.request * cache.block_table_stride,
               max(base, seen.first) >> cache.page_shift, tile_last >> cache.page_shift,
               seen.last >> cache.page_shift);
    const int end = slots_used(base) * kChunks;
#pragma unroll 1
    for (int i = threadIdx.x; i < end; i += kThreads) {
      const int row = i / kChunks, chunk = i % kChunks;
      const int32_t slot = base + row;
      const bool exists = slot >= seen.first && slot <= seen.last;
      int64_t offset = 0;
      if (exists) {
        offset = pages.page(slot >> cache.page_shift) * cache.key_page_stride +
                 (slot & ((1 << cache.page_shift) - 1)) * cache.key_slot_stride + chunk * kVector;
      }
      copy_async(key_rows(stage).chunk(row, chunk), key + offset, !exists);
    }
  }

  /// Q K^T of the warp's rows and slots, as base-2 logits; hidden slots as -inf.
  __device__ void score(int32_t base, int stage, float (&logits)[kPartTiles][4]) const {
    const int first = part * Shares::kPartSlots;
    const bool is_used = first < slots_used(base);
#pragma unroll
    for (int n = 0; n < kPartTiles; ++n) {
#pragma unroll
      for (int j = 0; j < 4; ++j) logits[n][j] = 0;
    }
    if (is_used) multiply_keys(stage, first, logits);
    const HiddenSlots hidden{p, tile, kv_head};
#pragma unroll
    for (int n = 0; n < kPartTiles; ++n) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const ScoredRow& row = rows[j / 2];
        const int32_t slot = base + first + n * 8 + lane % 4 * 2 + j % 2;
        float logit = plain_logit(p, logits[n][j]);
        if (has_modifiers(p)) logit = modified_logit(p, row, logits[n][j], slot);
        const bool sees = is_used && row.sees(slot);
        if (sees && hidden.exist()) logit = hidden.apply(row, slot, logit);
        logits[n][j] = sees ? logit : -INFINITY;
      }
    }
  }

  __device__ void load_query_step(int step, uint32_t (&a)[4]) const {
    load_matrices(query_rows().chunk(row_tile * kLatentRowTile + lane % 16, step * 2 + lane / 16),
                  a);
  }
  __device__ void multiply_keys(int stage, int first, float (&dots)[kPartTiles][4]) const {
    const Rows keys = key_rows(stage);
#pragma unroll 2
    for (int k = 0; k < kLatentDimK / 16; k += 2) {
      uint32_t a[4], b[4];
      if constexpr (kPartTiles == 1) {  // one load for eight slots and two steps
        load_matrices(keys.chunk(first + lane % 8, k * 2 + lane / 8), b);
        load_query_step(k, a);
        multiply<T>(dots[0], a, b[0], b[1]);
        load_query_step(k + 1, a);
        multiply<T>(dots[0], a, b[2], b[3]);
      } else {  // one for sixteen slots and a step
        static_assert(kPartTiles <= 2);
#pragma unroll
        for (int step = k; step < k + 2; ++step) {
          load_matrices(keys.chunk(first + lane / 16 * 8 + lane % 8, step * 2 + lane / 8 % 2), b);
          load_query_step(step, a);
          multiply<T>(dots[0], a, b[0], b[1]);
          multiply<T>(dots[kPartTiles - 1], a, b[2], b[3]);
        }
      }
    }
  }

  __device__ void share_tops(const float (&logits)[kPartTiles][4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float top = -INFINITY;
#pragma unroll
      for (int n = 0; n < kPartTiles; ++n) {
        top = fmaxf(top, fmaxf(logits[n][2 * half], logits[n][2 * half + 1]));
      }
      top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, 1));
      top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, 2));
      if (lane % 4 == 0) exchange.top[part][row_of(half)] = top;
    }
  }

  /// Takes the logits into the rows' maxima and sums, and leaves weights and factors for all warps.
  __device__ void weigh(const float (&logits)[kPartTiles][4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row_of(half);
      float top = max_log2[half];
#pragma unroll
      for (int other = 0; other < kParts; ++other) top = fmaxf(top, exchange.top[other][row]);
      // As long as nothing was visible, any finite shift keeps the exponents from becoming NaN.
      const float shift = top == -INFINITY ? 0.0f : top;
      const float rescale = exp2_approx(__fsub_rn(max_log2[half], shift));
      max_log2[half] = top;
      if (part == 0 && lane % 4 == 0) exchange.factor[row] = rescale;
#pragma unroll
      for (int n = 0; n < kPartTiles; ++n) {
        const float a = exp2_approx(__fsub_rn(logits[n][2 * half], shift));
        const float b = exp2_approx(__fsub_rn(logits[n][2 * half + 1], shift));
        sum[half][n] = __fmaf_rn(sum[half][n], rescale, __fadd_rn(a, b));
        const int column = part * Shares::kPartSlots + n * 8 + lane % 4 * 2;
        store_word(shared_address(&exchange.weights[row][column]), round_pair(a, b, T()));
      }
    }
  }

  /// Bits of the row tiles that see something of this tile.
  __device__ uint32_t showing() const {
    uint32_t bits = 0;
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) bits |= exchange.shows[m] != 0 ? 1u << m : 0u;
    return bits;
  }

  __device__ void rescale_output(uint32_t shows) {
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
      if ((shows >> m & 1) == 0) continue;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float factor = exchange.factor[m * kLatentRowTile + lane / 4 + 8 * half];
#pragma unroll
        for (int n = 0; n < kDimTiles; ++n) {
          output[m][n][2 * half] = __fmul_rn(output[m][n][2 * half], factor);
          output[m][n][2 * half + 1] = __fmul_rn(output[m][n][2 * half + 1], factor);
        }
      }
    }
  }

  /// All rows' weights times the warp's dimensions of V, which are read once for all of them.
  __device__ void multiply_values(int stage, int used) {
    const uint32_t shows = showing();
    if (shows == 0) return;  // nor has the tile been copied
    rescale_output(shows);
    const Rows values = key_rows(stage);
#pragma unroll
    for (int s = 0; s < kLatentTile / kLatentStep; ++s) {
      if (s * kLatentStep >= used) break;
      uint32_t a[kRowTiles][4] = {};
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m) {
        if ((shows >> m & 1) == 0) continue;
        const int row = m * kLatentRowTile + lane % 16, column = s * kLatentStep + lane / 16 * 8;
        load_matrices(shared_address(&exchange.weights[row][column]), a[m]);
      }
#pragma unroll
      for (int n = 0; n < kDimTiles; n += 2) {
        uint32_t b[4];
        const int chunk = warp * kDimTiles + n + lane / 16;
        load_matrices_transposed(values.chunk(s * kLatentStep + lane % 16, chunk), b);
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
          if ((shows >> m & 1) == 0) continue;
          multiply<T>(output[m][n], a[m], b[0], b[1]);
          multiply<T>(output[m][n + 1], a[m], b[2], b[3]);
        }
      }
    }
  }

  /// Between its meetings the maxima, then the weights are complete. The next tile's may follow
  /// after another one.
  __device__ void take_tile(int32_t base, int stage) {
    const bool shows = !is_hidden(base);
    float logits[kPartTiles][4];
    if (part == 0 && lane == 0) exchange.shows[row_tile] = shows;
    if (shows) {
      score(base, stage, logits);
      share_tops(logits);
    }
    __syncthreads();
    if (shows) weigh(logits);
    __syncthreads();
    multiply_values(stage, slots_used(base));
  }

  /// `split` is -1 when the block has all of its rows' slots.
  __device__ void write(int32_t split) {
    share_sums();
    __syncthreads();
    if (threadIdx.x < kRows && static_cast<int32_t>(threadIdx.x) < tile.row_count) {
      end_row_of_thread(split);
    }
    __syncthreads();
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = m * kLatentRowTile + lane / 4 + 8 * half;
        if (row >= tile.row_count) continue;
        const RowAddress at = row_address(p, tile, kv_head, row);
        if (split >= 0) {
          write_part(output[m], half, partial_index(p, at.token, at.head) + split);
        } else {
          write_output(output[m], half, at, exchange.factor[row]);
        }
      }
    }
  }

  __device__ void share_sums() const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row_of(half);
      if (part == 0 && lane % 4 == 0) exchange.top[0][row] = max_log2[half];
#pragma unroll
      for (int n = 0; n < kPartTiles; ++n) {
        float total = sum[half][n];
        total += __shfl_xor_sync(kAllLanes, total, 1);
        total += __shfl_xor_sync(kAllLanes, total, 2);
        if (lane % 4 == 0) exchange.sum[part * kPartTiles + n][row] = total;
      }
    }
  }

  /// Row threadIdx.x. A split that saw nothing leaves an empty state: the merge reads every split.
  __device__ void end_row_of_thread(int32_t split) const {
    const int row = threadIdx.x;
    const RowAddress at = row_address(p, tile, kv_head, row);
    float total = exchange.sum[0][row];
#pragma unroll
    for (int n = 1; n < kLatentSlotTiles; ++n) total = __fadd_rn(total, exchange.sum[n][row]);
    if (split >= 0) {
      const int64_t index = partial_index(p, at.token, at.head) + split;
      *reinterpret_cast<float2*>(p.partial_state + 2 * index) =
          make_float2(exchange.top[0][row], total);
      return;
    }
    const RowEnd end = end_row(p, at.head, exchange.top[0][row], total);
    exchange.factor[row] = end.factor;
    p.lse[at.token * p.lse_token_stride + at.head * p.lse_head_stride] = end.lse;
  }

  __device__ void write_output(const float (&result)[kDimTiles][4], int half, RowAddress at,
                               float factor) const {
    T* target = static_cast<T*>(p.output) + at.token * p.output_token_stride +
                at.head * p.output_head_stride + warp * Shares::kWarpDims;
#pragma unroll
    for (int n = 0; n < kDimTiles; ++n) {
      // Adding zero is what the merge of one split does: it turns -0 into +0.
      *reinterpret_cast<uint32_t*>(target + n * 8 + lane % 4 * 2) =
          round_pair(__fmul_rn(__fadd_rn(result[n][2 * half], 0.0f), factor),
                     __fmul_rn(__fadd_rn(result[n][2 * half + 1], 0.0f), factor), T());
    }
  }
  __device__ void write_part(const float (&result)[kDimTiles][4], int half, int64_t index) const {
    float* target =
        p.partial_output + index * kLatentDimV + warp * Shares::kWarpDims + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < kDimTiles; ++n) {
      *reinterpret_cast<float2*>(target + n * 8) =
          make_float2(result[n][2 * half], result[n][2 * half + 1]);
    }
  }
};

}  // namespace kvattn
