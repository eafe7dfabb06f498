// Writes the K and V of new tokens to their slots.
//
// Version 1: one warp for each token; its lanes share the token's heads in 16-byte vectors, so the
// request and the slot are found once for each token.
// Version 2: a warp takes as many tokens as its lanes can copy at once, so that few or small heads
// leave no lane idle: 32 tokens of one head of 16 bytes are one block, not 32.
#include "impl/kernels/batch.cuh"
#include "impl/kernels/launch.h"
#include "impl/kernels/warp.cuh"

namespace kvattn {
namespace {

constexpr int kVectorBytes = 16;

/// 2^shift lanes of a warp copy the rows of one token's heads.
template <class Element>
__device__ void copy_heads(Element* to, int64_t to_stride, const Element* from, int64_t from_stride,
                           int32_t heads, int32_t dim, int32_t shift) {
  constexpr int kElements = kVectorBytes / sizeof(Element);
  const int32_t head_vectors = dim / kElements;
#pragma unroll 1
  for (int32_t i = threadIdx.x & ((1 << shift) - 1); i < heads * head_vectors; i += 1 << shift) {
    const int64_t head = i / head_vectors;
    const int64_t element = (i % head_vectors) * kElements;
    *reinterpret_cast<uint4*>(to + head * to_stride + element) =
        *reinterpret_cast<const uint4*>(from + head * from_stride + element);
  }
}

/// `Element` has the size of the dtype; values are moved, never converted. Each 2^shift lanes have
/// a token of their own.
template <class Element>
__global__ void append_kernel(const AppendParams p, const int32_t shift) {
  const int32_t token = (int64_t{blockIdx.x} * kWarpLanes + threadIdx.x) >> shift;
  if (token >= p.tokens) return;
  const int32_t request =
      find_request(p.requests, token, [&](int32_t b) { return p.token_offsets[b]; });
  const int32_t slot = p.first_slots[request] + token - p.token_offsets[request];
  const PagedParams& cache = p.cache;
  const int64_t page =
      cache.block_table[request * cache.block_table_stride + (slot >> cache.page_shift)];
  const int64_t offset = slot & ((1 << cache.page_shift) - 1);

  const Element* key = static_cast<const Element*>(p.key) + token * p.key_token_stride;
  const Element* value = static_cast<const Element*>(p.value) + token * p.value_token_stride;
  Element* key_slot = static_cast<Element*>(cache.key) + page * cache.key_page_stride +
                      offset * cache.key_slot_stride;
  Element* value_slot = static_cast<Element*>(cache.value) + page * cache.value_page_stride +
                        offset * cache.value_slot_stride;

  copy_heads(key_slot, cache.key_head_stride, key, p.key_head_stride, p.kv_heads, p.head_dim,
             shift);
  copy_heads(value_slot, cache.value_head_stride, value, p.value_head_stride, p.kv_heads,
             p.value_dim, shift);
}

template <class Element>
void launch(const AppendParams& params, cudaStream_t stream) {
  const int64_t dim = params.head_dim > params.value_dim ? params.head_dim : params.value_dim;
  const int64_t vectors = params.kv_heads * dim * int64_t{sizeof(Element)} / kVectorBytes;
  int32_t shift = 0;
  while ((1 << shift) < kWarpLanes && (1 << shift) < vectors) ++shift;
  const int32_t block_tokens = kWarpLanes >> shift;
  const int32_t blocks = (params.tokens - 1) / block_tokens + 1;
  append_kernel<Element><<<blocks, kWarpLanes, 0, stream>>>(params, shift);
}

}  // namespace

cudaError_t launch_append(const AppendParams& params, DType dtype, cudaStream_t stream) {
  if (dtype == DType::kF32) {
    launch<uint32_t>(params, stream);
  } else {
    launch<uint16_t>(params, stream);
  }
  return cudaGetLastError();
}

}  // namespace kvattn
