// Attention over a latent cache on tensor cores, fp16 and bf16: V is the first kDimV dimensions of
// K, and all query heads share one row (multi-head latent attention in its absorbed form).
//
// Version 1 ("latent"): a block takes 16 packed query rows, 16 heads of one query where there are
// as many. Rows are too wide for one warp's registers, so the warps of a block share them: for the
// scores each warp has eight slots of the tile, for O each has 128 dimensions. Scores cross between
// the two through shared memory; every warp then weighs the whole tile itself, which costs little
// beside the products. K is read once, and V never: its rows are already there.
//
// Slots are cut into splits of a fixed size, one block each, and partial results are added up from
// left to right by merge_latent_kernel. Tiles start at multiples of kLatentTile and are visited in
// ascending order; what nobody sees weighs zero. So a query has the same bits in prefill, any
// chunk, decode and verify, alone and in any batch.
#pragma once

#include "impl/kernels/attend_decode.cuh"
#include "impl/kernels/page_window.cuh"
#include "impl/kernels/tensor_core.cuh"
#include "impl/kernels/tile_softmax.cuh"

namespace kvattn {

constexpr int kLatentDimK = 576, kLatentDimV = 512;
constexpr int kLatentRows = 16;
constexpr int kLatentWarps = 4;
constexpr int kLatentTile = 8 * kLatentWarps;
static_assert(kLatentTile == kLatentTileSlots);
constexpr int kLatentWarpDims = kLatentDimV / kLatentWarps;
constexpr int kLatentStages = 2;
constexpr int kLatentStep = 16;  // slots of one P.V product
/// Floats from row to row of the scores: eight more than a tile, so that the four rows that a
/// quarter of a warp touches lie in different banks.
constexpr int kLatentScoreStride = kLatentTile + 8;
constexpr int kLatentSharedBytes = (kLatentRows + kLatentStages * kLatentTile) * kLatentDimK * 2 +
                                   kLatentRows * kLatentScoreStride * int{sizeof(float)};

template <class T>
struct LatentAttention {
  static constexpr int kThreads = kLatentWarps * kWarpLanes;
  static constexpr int kChunks = kLatentDimK / kVector;
  static constexpr int kSlotTiles = kLatentTile / 8;
  static constexpr int kDimTiles = kLatentWarpDims / 8;
  using Rows = SwizzledRows<kLatentDimK>;

  const AttendParams& p;
  const RowTile& tile;
  int32_t kv_head;
  uint32_t shared;
  float* scores;  // [kLatentRows][kLatentScoreStride]
  PageWindow<kThreads> pages;
  int lane = threadIdx.x % kWarpLanes, warp = threadIdx.x / kWarpLanes;
  Visible seen;  // hull over the block's rows
  // A lane holds parts of two rows: lane / 4 and lane / 4 + 8.
  ScoredRow rows[2];
  float max_log2[2], sum[2];
  float output[kDimTiles][4];  // of the warp's dimensions

  __device__ Rows query_rows() const { return {shared}; }
  __device__ Rows key_rows(int stage) const {
    return {shared + (kLatentRows + stage * kLatentTile) * kLatentDimK * 2};
  }

  /// `hull` is what the tile's rows see between them.
  __device__ void begin(Visible hull, Visible part) {
    seen = intersection(hull, part);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rows[half] = scored_row(p, tile, kv_head, lane / 4 + 8 * half, hull);
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

  __device__ void copy_query() const {
#pragma unroll 1
    for (int i = threadIdx.x; i < kLatentRows * kChunks; i += kThreads) {
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

  /// Whether mask or tree hide the tile at `base`: from all warps, which have the same rows.
  __device__ bool is_masked(int32_t base) const {
    return hides_tile({p, tile, kv_head}, rows, base, slots_used(base));
  }

  /// Slots that nobody sees are not read, and become zeros: 0 * NaN is NaN.
  __device__ void copy_tile(int32_t base, int stage) {
    if (is_masked(base)) return;
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

  /// The warp's eight slots: Q K^T to shared memory, as base-2 logits; hidden slots as -inf.
  __device__ void score(int32_t base, int stage, int used) const {
    const int first = warp * 8;
    float dots[4] = {0, 0, 0, 0};
    if (first < used) multiply_keys(stage, first, dots);
    const HiddenSlots hidden{p, tile, kv_head};
    const int column = first + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const ScoredRow& row = rows[j / 2];
      const int32_t slot = base + column + j % 2;
      float logit = plain_logit(p, dots[j]);
      if (has_modifiers(p)) logit = modified_logit(p, row, dots[j], slot);
      const bool sees = first < used && row.sees(slot);
      if (sees && hidden.exist()) logit = hidden.apply(row, slot, logit);
      dots[j] = sees ? logit : -INFINITY;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float* const pair = &scores[(lane / 4 + half * 8) * kLatentScoreStride + column];
      store_pair(shared_address(pair), dots[2 * half], dots[2 * half + 1]);
    }
  }

  __device__ void multiply_keys(int stage, int first, float (&dots)[4]) const {
    const Rows queries = query_rows(), keys = key_rows(stage);
#pragma unroll 2
    for (int k = 0; k < kLatentDimK / 16; k += 2) {
      uint32_t b[4], a[4];
      load_matrices(keys.chunk(first + lane % 8, k * 2 + lane / 8), b);
      load_matrices(queries.chunk(lane % 16, k * 2 + lane / 16), a);
      multiply<T>(dots, a, b[0], b[1]);
      load_matrices(queries.chunk(lane % 16, k * 2 + 2 + lane / 16), a);
      multiply<T>(dots, a, b[2], b[3]);
    }
  }

  /// The tile's logits out of shared memory, placed as mma.sync wants P.
  __device__ void gather_scores(float (&logits)[kSlotTiles][4]) const {
#pragma unroll
    for (int n = 0; n < kSlotTiles; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 pair = *reinterpret_cast<const float2*>(
            &scores[(lane / 4 + half * 8) * kLatentScoreStride + n * 8 + lane % 4 * 2]);
        logits[n][2 * half] = pair.x;
        logits[n][2 * half + 1] = pair.y;
      }
    }
  }

  __device__ void multiply_values(int stage, int used, const float (&weights)[kSlotTiles][4]) {
    const Rows values = key_rows(stage);
#pragma unroll
    for (int s = 0; s < kLatentTile / kLatentStep; ++s) {
      if (s * kLatentStep >= used) break;
      const float(&low)[4] = weights[2 * s];
      const float(&high)[4] = weights[2 * s + 1];
      const uint32_t a[4] = {round_pair(low[0], low[1], T()), round_pair(low[2], low[3], T()),
                             round_pair(high[0], high[1], T()), round_pair(high[2], high[3], T())};
#pragma unroll
      for (int n = 0; n < kDimTiles; n += 2) {
        uint32_t b[4];
        const int chunk = warp * kDimTiles + n + lane / 16;
        load_matrices_transposed(values.chunk(s * kLatentStep + lane % 16, chunk), b);
        multiply<T>(output[n], a, b[0], b[1]);
        multiply<T>(output[n + 1], a, b[2], b[3]);
      }
    }
  }

  /// Between its two meetings the scores are complete; the next tile's may follow after the second.
  __device__ void take_tile(int32_t base, int stage) {
    if (is_masked(base)) return;
    const int used = slots_used(base);
    float weights[kSlotTiles][4];
    score(base, stage, used);
    __syncthreads();
    gather_scores(weights);
    weigh_tile<kSlotTiles, kDimTiles>(weights, {max_log2, sum, output});
    multiply_values(stage, used, weights);
  }

  /// `split` is -1 when the block has all of its rows' slots.
  __device__ void write(int32_t split) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      sum[half] += __shfl_xor_sync(kAllLanes, sum[half], 1);
      sum[half] += __shfl_xor_sync(kAllLanes, sum[half], 2);
      const int row = lane / 4 + 8 * half;
      if (row >= tile.row_count) continue;
      const RowAddress at = row_address(p, tile, kv_head, row);
      if (split >= 0) {
        write_part(half, partial_index(p, at.token, at.head) + split);
        continue;
      }
      const RowEnd end = end_row(p, at.head, max_log2[half], sum[half]);
      T* target = static_cast<T*>(p.output) + at.token * p.output_token_stride +
                  at.head * p.output_head_stride + warp * kLatentWarpDims;
#pragma unroll
      for (int n = 0; n < kDimTiles; ++n) {
        // Adding zero is what the merge of one split does: it turns -0 into +0.
        *reinterpret_cast<uint32_t*>(target + n * 8 + lane % 4 * 2) =
            round_pair(__fmul_rn(__fadd_rn(output[n][2 * half], 0.0f), end.factor),
                       __fmul_rn(__fadd_rn(output[n][2 * half + 1], 0.0f), end.factor), T());
      }
      if (warp == 0 && lane % 4 == 0) {
        p.lse[at.token * p.lse_token_stride + at.head * p.lse_head_stride] = end.lse;
      }
    }
  }

  /// A split that saw nothing leaves an empty state: the merge reads every split.
  __device__ void write_part(int half, int64_t index) const {
    float* target = p.partial_output + index * kLatentDimV + warp * kLatentWarpDims + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < kDimTiles; ++n) {
      *reinterpret_cast<float2*>(target + n * 8) =
          make_float2(output[n][2 * half], output[n][2 * half + 1]);
    }
    if (warp == 0 && lane % 4 == 0) {
      *reinterpret_cast<float2*>(p.partial_state + 2 * index) =
          make_float2(max_log2[half], sum[half]);
    }
  }
};

/// Block: kLatentWarps warps. Grid: x row tiles (see batch.cuh), y KV heads, z splits.
template <class T>
__global__ void __launch_bounds__(kLatentWarps* kWarpLanes)
    attend_latent_kernel(const AttendParams p) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ int32_t pages[LatentAttention<T>::kThreads];
  const BlockWork work = find_block_work(p, kLatentRows);
  const RowTile& tile = work.tile;
  if (tile.row_count <= 0) return;
  const int32_t splits = work.splits, split = blockIdx.z;
  if (split >= splits) return;
  constexpr int kScoresAt = (kLatentRows + kLatentStages * kLatentTile) * kLatentDimK * 2;
  LatentAttention<T> attention{p,
                               tile,
                               static_cast<int32_t>(blockIdx.y),
                               shared_address(shared),
                               reinterpret_cast<float*>(shared + kScoresAt),
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
      __syncthreads();  // nobody reads this stage or its scores any more
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

template <class T>
cudaError_t launch_latent(const AttendParams& p, cudaStream_t stream) {
  const auto kernel = attend_latent_kernel<T>;
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kLatentSharedBytes);
  if (error != cudaSuccess) return error;
  const int64_t tiles = static_cast<int64_t>(p.tokens) * p.group / kLatentRows + p.requests;
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(p.kv_heads),
                  static_cast<unsigned>(p.splits_max));
  kernel<<<grid, kLatentWarps * kWarpLanes, kLatentSharedBytes, stream>>>(p);
  error = cudaGetLastError();
  if (error != cudaSuccess || p.splits_max == 1) return error;
  const dim3 rows(static_cast<unsigned>(p.tokens), static_cast<unsigned>(p.kv_heads * p.group));
  merge_latent_kernel<T><<<rows, kLatentDimV / kVector, 0, stream>>>(p);
  return cudaGetLastError();
}

}  // namespace kvattn
