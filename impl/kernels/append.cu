// Writes the K and V of new tokens to their slots.
//
// Version 1: one warp for each token; its lanes share the token's heads in 16-byte vectors, so the
// request and the slot are found once for each token.
// Version 2: a warp takes as many tokens as its lanes can copy at once, so that few or small heads
// leave no lane idle: 32 tokens of one head of 16 bytes are one block, not 32.
// Version 3: a lane finds the head of its first vector by division and steps on from there, by
// steps that the host has found: the loop has neither division nor product, and the first offsets
// are the same for every token.
#include "impl/kernels/batch.cuh"
#include "impl/kernels/launch.h"
#include "impl/kernels/warp.cuh"

namespace kvattn {
namespace {

constexpr int kVectorBytes = 16;

/// How the vectors of one token's heads are shared out: `lanes` of them take one each and go on by
/// `head_step` heads and `vector_step` vectors.
struct Share {
  int32_t vectors;  // of one head; 0: there is nothing to copy
  int32_t lanes, head_step, vector_step;
};

struct Shares {
  int32_t shift;  // 2^shift lanes have a token
  Share key, value;
};

/// Where a lane is in the rows of a token's heads, in bytes from the first.
struct Walk {
  int64_t at, step, step_to_next_head;

  __device__ Walk(const Share& share, int64_t head_bytes, int32_t head, int32_t vector)
      : at(head * head_bytes + vector * kVectorBytes),
        step(share.head_step * head_bytes + share.vector_step * kVectorBytes),
        step_to_next_head(head_bytes - share.vectors * kVectorBytes) {}
  __device__ void advance(bool wraps) { at += step + (wraps ? step_to_next_head : 0); }
};

template <class Element>
__device__ void copy_heads(Element* to, int64_t to_stride, const Element* from, int64_t from_stride,
                           int32_t heads, const Share& share, int32_t lane) {
  constexpr int64_t kBytes = sizeof(Element);
  const int32_t all = heads * share.vectors;
  if (lane >= all) return;
  const int32_t head = lane / share.vectors;
  int32_t vector = lane - head * share.vectors;
  Walk target(share, to_stride * kBytes, head, vector);
  Walk source(share, from_stride * kBytes, head, vector);
  int32_t i = lane;
#pragma unroll 1
  while (true) {
    *reinterpret_cast<uint4*>(reinterpret_cast<char*>(to) + target.at) =
        *reinterpret_cast<const uint4*>(reinterpret_cast<const char*>(from) + source.at);
    i += share.lanes;
    if (i >= all) return;
    vector += share.vector_step;
    const bool wraps = vector >= share.vectors;
    if (wraps) vector -= share.vectors;
    target.advance(wraps);
    source.advance(wraps);
  }
}

/// `Element` has the size of the dtype; values are moved, never converted. Each 2^shift lanes have
/// a token of their own.
template <class Element>
__global__ void append_kernel(const AppendParams p, const Shares shares) {
  const uint32_t number = blockIdx.x * (kWarpLanes >> shares.shift) + (threadIdx.x >> shares.shift);
  if (number >= static_cast<uint32_t>(p.tokens)) return;
  const auto token = static_cast<int32_t>(number);
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

  const int32_t lane = threadIdx.x & ((1 << shares.shift) - 1);
  copy_heads(key_slot, cache.key_head_stride, key, p.key_head_stride, p.kv_heads, shares.key, lane);
  copy_heads(value_slot, cache.value_head_stride, value, p.value_head_stride, p.kv_heads,
             shares.value, lane);
}

template <class Element>
Share share_of(int32_t dim, int32_t shift) {
  const int32_t vectors = dim * static_cast<int32_t>(sizeof(Element)) / kVectorBytes;
  if (vectors == 0) return {};
  const int32_t lanes = 1 << shift;
  return {vectors, lanes, lanes / vectors, lanes % vectors};
}

template <class Element>
void launch(const AppendParams& params, cudaStream_t stream) {
  const int64_t dim = params.head_dim > params.value_dim ? params.head_dim : params.value_dim;
  const int64_t vectors = params.kv_heads * dim * int64_t{sizeof(Element)} / kVectorBytes;
  int32_t shift = 0;
  while ((1 << shift) < kWarpLanes && (1 << shift) < vectors) ++shift;
  const int32_t block_tokens = kWarpLanes >> shift;
  const int32_t blocks = (params.tokens - 1) / block_tokens + 1;
  const Shares shares = {shift, share_of<Element>(params.head_dim, shift),
                         share_of<Element>(params.value_dim, shift)};
  append_kernel<Element><<<blocks, kWarpLanes, 0, stream>>>(params, shares);
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
