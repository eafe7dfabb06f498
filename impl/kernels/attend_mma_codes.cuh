// Attention on tensor cores over a cache of 8-bit codes (e4m3, e5m2, int8), fp16 and bf16 queries.
//
// Version 1: attend_mma.cuh with another way in. Codes come by asynchronous copies of 16 bytes, or
// of 8 where rows end or start between such vectors; once a tile is there, the block turns it into
// operands and goes on as that file does. K's operands are the codes themselves, which both types
// hold exactly: its scale multiplies the fp32 score. V's operands are code * scale, rounded once: P
// keeps its own range.
//
// Shared memory: Q, the operands of K and V of one tile, and the codes of two, in the place that
// the second stage has there; then the scales of two tiles.
//
// Version 2: codes are half the bytes, so what is read beside them weighs twice. What the batch
// says of a block, its entries of the block table and a scale that all slots share are read once
// for all warps. It serves a single query, too ("decode_grouped"): one warp has its rows, and all
// of them copy and convert.
#pragma once

#include "impl/kernels/attend_mma.cuh"
#include "impl/kernels/codes.cuh"
#include "impl/kernels/page_window.cuh"

namespace kvattn {

constexpr int kCodesWarps = 4;

template <int kDim>
constexpr int kCodesSharedBytes =
    kMmaSharedBytes<kDim, kCodesWarps> + 2 * kMmaStages* kMmaTile<kDim>* int{sizeof(float)};

template <class T, int kDim>
struct CodesAttention : MmaAttention<T, kDim, kCodesWarps> {
  using Base = MmaAttention<T, kDim, kCodesWarps>;
  using Base::kChunks, Base::kSlotTiles, Base::kThreads, Base::kTile;
  using Base::kv_head, Base::lane, Base::p, Base::seen, Base::shared, Base::tile;
  static constexpr int kTileBytes = kTile * kDim;
  static_assert(kTile <= kThreads);  // a tile's pages fit into the window

  PageWindow<kThreads> pages;
  uint32_t missing = 0;  // bit of a stage: mask or tree hide its tile from the whole block

  __device__ uint32_t key_codes(int stage) const {
    return this->key_rows(1).base + stage * kTileBytes;
  }
  __device__ uint32_t value_codes(int stage) const {
    return this->value_rows(1).base + stage * kTileBytes;
  }
  __device__ uint32_t key_scales(int stage) const {
    constexpr int kOperands = kMmaSharedBytes<kDim, kCodesWarps>;
    return shared + kOperands + stage * kTile * int{sizeof(float)};
  }
  __device__ uint32_t value_scales(int stage) const { return key_scales(kMmaStages + stage); }

  /// Makes available what the tile at `base` needs of the block table. Every thread calls.
  __device__ void find_pages(int32_t base) {
    const int32_t shift = p.cache.page_shift;
    const int32_t end = min(base + this->slots_used(base) - 1, seen.last);
    pages.move(p.cache.block_table + tile.request * p.cache.block_table_stride,
               max(base, seen.first) >> shift, end >> shift, seen.last >> shift);
  }

  /// Slots that nobody sees are not read, nor are their scales; they become zeros.
  __device__ void copy_codes(int32_t base, int stage) {
    missing &= ~(1u << stage);
    if (this->is_masked_for_all(base)) {
      missing |= 1u << stage;
      return;
    }
    find_pages(base);
    if (has_wide_rows()) {
      copy_rows<16>(base, stage);
    } else {
      copy_rows<8>(base, stage);
    }
    if (p.cache.key_scale != nullptr && !has_one_scale(p.cache)) copy_scales(base, stage);
  }

  /// Rows that consist of whole vectors of 16 bytes.
  __device__ bool has_wide_rows() const {
    const PagedParams& cache = p.cache;
    const int64_t bits = reinterpret_cast<int64_t>(cache.key) |
                         reinterpret_cast<int64_t>(cache.value) | cache.key_page_stride |
                         cache.key_slot_stride | cache.key_head_stride | cache.value_page_stride |
                         cache.value_slot_stride | cache.value_head_stride | p.head_dim;
    return bits % 16 == 0;
  }

  template <int kBytes>
  __device__ void copy_rows(int32_t base, int stage) const {
    constexpr int kPieces = kDim / kBytes;
    const PagedParams& cache = p.cache;
    const Code* key = static_cast<const Code*>(cache.key) + kv_head * cache.key_head_stride;
    const Code* value = static_cast<const Code*>(cache.value) + kv_head * cache.value_head_stride;
    const int end = this->slots_used(base) * kPieces;
#pragma unroll 1
    for (int i = threadIdx.x; i < end; i += kThreads) {
      const int row = i / kPieces, piece = i % kPieces;
      const int32_t slot = base + row;
      const bool is_seen = slot >= seen.first && slot <= seen.last;
      const bool exists = is_seen && piece * kBytes < p.head_dim;
      const int64_t page = exists ? pages.page(slot >> cache.page_shift) : 0;
      const int64_t place = exists ? slot & ((1 << cache.page_shift) - 1) : 0;
      const int64_t at = exists ? piece * kBytes : 0;
      const uint32_t target = row * kDim + piece * kBytes;
      copy_async_narrow<kBytes>(
          key_codes(stage) + target,
          key + page * cache.key_page_stride + place * cache.key_slot_stride + at, !exists);
      copy_async_narrow<kBytes>(
          value_codes(stage) + target,
          value + page * cache.value_page_stride + place * cache.value_slot_stride + at, !exists);
    }
  }

  /// The one scale takes the place of every slot's, for good.
  __device__ void spread_scale() const {
    if (p.cache.key_scale == nullptr || !has_one_scale(p.cache) || threadIdx.x >= kWarpLanes)
      return;
    const int64_t index = scale_index(p.cache, 0, 0, kv_head);
    const float key = p.cache.key_scale[index], value = p.cache.value_scale[index];
    for (int row = lane; row < kMmaStages * kTile; row += kWarpLanes) {
      store_word(key_scales(0) + row * 4, __float_as_uint(key));
      store_word(value_scales(0) + row * 4, __float_as_uint(value));
    }
  }

  /// A slot to a lane: the scales of a warp's slots lie in few sectors, or in one.
  __device__ void copy_scales(int32_t base, int stage) const {
    const PagedParams& cache = p.cache;
    const int end = this->slots_used(base);
#pragma unroll 1
    for (int row = threadIdx.x; row < end; row += kThreads) {
      const int32_t slot = base + row;
      const bool is_seen = slot >= seen.first && slot <= seen.last;
      const int64_t page = is_seen ? pages.page(slot >> cache.page_shift) : 0;
      const int64_t place = is_seen ? slot & ((1 << cache.page_shift) - 1) : 0;
      const int64_t scale = is_seen ? scale_index(cache, page, place, kv_head) : 0;
      copy_async_narrow<4>(key_scales(stage) + row * 4, cache.key_scale + scale, !is_seen);
      copy_async_narrow<4>(value_scales(stage) + row * 4, cache.value_scale + scale, !is_seen);
    }
  }

  __device__ static uint2 load_codes(uint32_t address) {
    uint2 words;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
                 : "=r"(words.x), "=r"(words.y)
                 : "r"(address)
                 : "memory");
    return words;
  }
  __device__ static float load_scale(uint32_t address) {
    float scale;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(scale) : "r"(address) : "memory");
    return scale;
  }
  __device__ static void store_operands(uint32_t address, const Vec8& v) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(round_pair(v.x[0], v.x[1], T())), "r"(round_pair(v.x[2], v.x[3], T())),
                 "r"(round_pair(v.x[4], v.x[5], T())), "r"(round_pair(v.x[6], v.x[7], T()))
                 : "memory");
  }

  /// The codes of a stage to operands, where the products look for them.
  __device__ void convert(int32_t base, int stage) const {
    if ((missing >> stage & 1) != 0) return;
    const int end = this->slots_used(base) * kChunks;
#pragma unroll 1
    for (int i = threadIdx.x; i < end; i += kThreads) {
      const int row = i / kChunks, chunk = i % kChunks;
      const uint32_t source = row * kDim + chunk * kVector;
      store_operands(this->key_rows(0).chunk(row, chunk),
                     decode8(load_codes(key_codes(stage) + source), p.cache.format));
      Vec8 v = decode8(load_codes(value_codes(stage) + source), p.cache.format);
      if (p.cache.value_scale != nullptr) {
        const float scale = load_scale(value_scales(stage) + row * 4);
#pragma unroll
        for (int j = 0; j < kVector; ++j) v.x[j] = __fmul_rn(v.x[j], scale);
      }
      store_operands(this->value_rows(0).chunk(row, chunk), v);
    }
  }

  __device__ void scale_scores(int stage, int used, float (&scores)[kSlotTiles][4]) const {
    if (p.cache.key_scale == nullptr) return;
#pragma unroll
    for (int n = 0; n < kSlotTiles; ++n) {
      if (n * 8 >= used) break;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float scale = load_scale(key_scales(stage) + (n * 8 + lane % 4 * 2 + j) * 4);
        scores[n][j] = __fmul_rn(scores[n][j], scale);
        scores[n][j + 2] = __fmul_rn(scores[n][j + 2], scale);
      }
    }
  }

  __device__ void take_codes(int32_t base, int stage) {
    if (this->is_hidden(base) || this->is_masked(base)) return;
    const int used = this->slots_used(base);
    float scores[kSlotTiles][4];
    this->multiply_keys(0, used, scores);
    scale_scores(stage, used, scores);
    this->mask(base, used, scores);
    weigh_tile(scores, this->states());
    this->multiply_values(0, used, scores);
  }
};

/// Block: kCodesWarps warps. Grid: x row tiles (see batch.cuh), y KV heads, z splits.
template <class T, int kDim>
__global__ void __launch_bounds__(kCodesWarps* kWarpLanes, 1)
    attend_mma_codes_kernel(const AttendParams p) {
  extern __shared__ __align__(128) uint8_t shared[];
  using Attention = CodesAttention<T, kDim>;
  __shared__ int32_t pages[Attention::kThreads];
  const BlockWork work = find_block_work(p, kMmaRows * kCodesWarps);
  const RowTile& tile = work.tile;
  if (tile.row_count <= 0) return;
  const int32_t splits = work.splits, split = blockIdx.z;
  if (split >= splits) return;
  Attention attention{{p, tile, static_cast<int32_t>(blockIdx.y), shared_address(shared)}, {pages}};
  attention.begin(work.hull, splits > 1 ? slots_of_split(p, split) : Visible{0, INT32_MAX});
  const Visible seen = attention.seen;
  if (seen.last >= 0) {
    constexpr int32_t kTile = Attention::kTile;
    const int32_t end = seen.last / kTile + 1;
    int32_t index = seen.first / kTile;
    attention.copy_query();
    attention.spread_scale();
    attention.copy_codes(index * kTile, 0);
    commit_copies();
    for (int stage = 0; index < end; ++index, stage ^= 1) {
      if (index + 1 < end) attention.copy_codes((index + 1) * kTile, stage ^ 1);
      commit_copies();
      wait_copies<1>();
      __syncthreads();  // everybody's copies of this tile have arrived
      if (index == seen.first / kTile) attention.load_query();
      attention.convert(index * kTile, stage);
      __syncthreads();  // the operands are complete
      attention.take_codes(index * kTile, stage);
      __syncthreads();  // nobody reads operands or scales any more; both are written again
    }
  }
  attention.write(splits > 1 ? split : -1);
}

template <class T, int kDim>
cudaError_t launch_mma_codes_instance(const AttendParams& p, cudaStream_t stream) {
  constexpr int kBytes = kCodesSharedBytes<kDim>;
  const auto kernel = attend_mma_codes_kernel<T, kDim>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  const int64_t tiles =
      static_cast<int64_t>(p.tokens) * p.group / (kMmaRows * kCodesWarps) + p.requests;
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(p.kv_heads),
                  static_cast<unsigned>(p.is_divided ? p.splits_max : 1));
  kernel<<<grid, kCodesWarps * kWarpLanes, kBytes, stream>>>(p);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_mma_codes(const AttendParams& p, cudaStream_t stream) {
  if (p.head_dim <= 64) return launch_mma_codes_instance<T, 64>(p, stream);
  if (p.head_dim <= 128) return launch_mma_codes_instance<T, 128>(p, stream);
  return launch_mma_codes_instance<T, 256>(p, stream);
}

}  // namespace kvattn
