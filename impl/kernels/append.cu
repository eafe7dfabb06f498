// Writes the K and V of new tokens to their slots.
//
// Version 1: one warp for each token; its lanes share the token's heads in 16-byte vectors, so the
// request and the slot are found once for each token.
#include "impl/kernels/batch.cuh"
#include "impl/kernels/launch.h"
#include "impl/kernels/warp.cuh"

namespace kvattn {
namespace {

constexpr int kVectorBytes = 16;

/// A warp copies the rows of one token's heads.
template <class Element>
__device__ void copy_heads(Element* to, int64_t to_stride, const Element* from, int64_t from_stride,
                           int32_t heads, int32_t dim) {
  constexpr int kElements = kVectorBytes / sizeof(Element);
  const int32_t head_vectors = dim / kElements;
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < heads * head_vectors; i += kWarpLanes) {
    const int64_t head = i / head_vectors;
    const int64_t element = (i % head_vectors) * kElements;
    *reinterpret_cast<uint4*>(to + head * to_stride + element) =
        *reinterpret_cast<const uint4*>(from + head * from_stride + element);
  }
}

/// `Element` has the size of the dtype; values are moved, never converted.
template <class Element>
__global__ void append_kernel(const AppendParams p) {
  const int32_t token = blockIdx.x;
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

  copy_heads(key_slot, cache.key_head_stride, key, p.key_head_stride, p.kv_heads, p.head_dim);
  copy_heads(value_slot, cache.value_head_stride, value, p.value_head_stride, p.kv_heads,
             p.value_dim);
}

}  // namespace

cudaError_t launch_append(const AppendParams& params, DType dtype, cudaStream_t stream) {
  if (dtype == DType::kF32) {
    append_kernel<uint32_t><<<params.tokens, kWarpLanes, 0, stream>>>(params);
  } else {
    append_kernel<uint16_t><<<params.tokens, kWarpLanes, 0, stream>>>(params);
  }
  return cudaGetLastError();
}

}  // namespace kvattn
