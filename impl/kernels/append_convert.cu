// Writes the K and V of new tokens to their slots, changed on the way: K turned to its position
// (RoPE), K and V divided by their scales and rounded to 8-bit codes; either or both.
//
// Version 1: one warp for each token. Lanes share the vectors of as many heads as fit the warp, so
// that a lane turns the same dimensions of every head and finds their sines once. What a slot holds
// depends on its own token, position and scales only.
//
// Compiled for sm_80 and, because the hardware's conversions save half of its instructions, sm_89.
#include "impl/kernels/batch.cuh"
#include "impl/kernels/codes.cuh"
#include "impl/kernels/launch.h"
#include "impl/kernels/rotate.cuh"
#include "impl/kernels/warp.cuh"

namespace kvattn {
namespace {

/// The slot of a token.
struct Target {
  int64_t page, offset;
};

__device__ Target find_target(const AppendParams& p, int32_t token) {
  const int32_t request =
      find_request(p.requests, token, [&](int32_t b) { return p.token_offsets[b]; });
  const int32_t slot = p.first_slots[request] + token - p.token_offsets[request];
  const PagedParams& cache = p.cache;
  const int64_t page =
      cache.block_table[request * cache.block_table_stride + (slot >> cache.page_shift)];
  return {page, slot & ((1 << cache.page_shift) - 1)};
}

/// K or V of one token.
template <class T>
struct Part {
  const T* source;
  int64_t source_head_stride;
  void* slots;  // of the cache
  int64_t target, target_head_stride;
  const float* scale;
};

template <class T>
__device__ Part<T> key_part(const AppendParams& p, int32_t token, Target at) {
  const PagedParams& c = p.cache;
  return {
      static_cast<const T*>(p.key) + token * p.key_token_stride,   p.key_head_stride, c.key,
      at.page * c.key_page_stride + at.offset * c.key_slot_stride, c.key_head_stride, c.key_scale};
}

template <class T>
__device__ Part<T> value_part(const AppendParams& p, int32_t token, Target at) {
  const PagedParams& c = p.cache;
  return {static_cast<const T*>(p.value) + token * p.value_token_stride,
          p.value_head_stride,
          c.value,
          at.page * c.value_page_stride + at.offset * c.value_slot_stride,
          c.value_head_stride,
          c.value_scale};
}

template <class T>
__device__ void store(const PagedParams& cache, const Part<T>& part, Target at, int64_t head,
                      int32_t dim, Vec8 x) {
  const int64_t element = part.target + head * part.target_head_stride + dim;
  if (cache.format == CodeFormat::kNone) {
    store8(static_cast<T*>(part.slots) + element, x);
    return;
  }
  if (part.scale != nullptr) {
    const float scale = part.scale[scale_index(cache, at.page, at.offset, head)];
#pragma unroll
    for (int i = 0; i < kVector; ++i) x.x[i] = __fdiv_rn(x.x[i], scale);
  }
  store_codes8(static_cast<uint8_t*>(part.slots) + element, x, cache.format);
}

template <class T>
__global__ void __launch_bounds__(kWarpLanes) append_convert_kernel(const AppendParams p) {
  const int32_t token = blockIdx.x, lane = threadIdx.x;
  const int32_t vectors = p.head_dim / kVector;
  const int32_t heads_at_once = kWarpLanes / vectors;
  const int32_t dim = lane % vectors * kVector;
  if (lane >= heads_at_once * vectors) return;
  const Target at = find_target(p, token);
  const Part<T> key = key_part<T>(p, token, at), value = value_part<T>(p, token, at);
  const bool turns = p.rope.positions != nullptr && dim < p.rope.dims;
  Turns8 turn;
  if (turns) turn.find(p.rope, p.rope.positions[token], dim);
#pragma unroll 1
  for (int64_t head = lane / vectors; head < p.kv_heads; head += heads_at_once) {
    const T* row = key.source + head * key.source_head_stride;
    Vec8 k = load8(row + dim);
    if (turns) turn.turn(row, k);
    store(p.cache, key, at, head, dim, k);
    store(p.cache, value, at, head, dim,
          load8(value.source + head * value.source_head_stride + dim));
  }
}

/// Block: one warp. Grid: x tokens.
template <class T>
__global__ void __launch_bounds__(kWarpLanes) rotate_kernel(const RotateParams p) {
  const int32_t token = blockIdx.x, lane = threadIdx.x;
  const int32_t vectors = p.head_dim / kVector;
  const int32_t heads_at_once = kWarpLanes / vectors;
  const int32_t dim = lane % vectors * kVector;
  if (lane >= heads_at_once * vectors) return;
  const bool turns = dim < p.rope.dims;
  Turns8 turn;
  if (turns) turn.find(p.rope, p.rope.positions[token], dim);
#pragma unroll 1
  for (int64_t head = lane / vectors; head < p.heads; head += heads_at_once) {
    const T* row =
        static_cast<const T*>(p.query) + token * p.query_token_stride + head * p.query_head_stride;
    Vec8 q = load8(row + dim);
    if (turns) turn.turn(row, q);
    store8(static_cast<T*>(p.rotated) + (int64_t{token} * p.heads + head) * p.head_dim + dim, q);
  }
}

template <class T>
cudaError_t launch(const AppendParams& p, cudaStream_t stream) {
  append_convert_kernel<T><<<p.tokens, kWarpLanes, 0, stream>>>(p);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch(const RotateParams& p, cudaStream_t stream) {
  rotate_kernel<T><<<p.tokens, kWarpLanes, 0, stream>>>(p);
  return cudaGetLastError();
}

template <class Params>
cudaError_t launch_for(const Params& params, DType dtype, cudaStream_t stream) {
  switch (dtype) {
    case DType::kF16:
      return launch<__half>(params, stream);
    case DType::kBF16:
      return launch<__nv_bfloat16>(params, stream);
    default:
      return launch<float>(params, stream);
  }
}

}  // namespace

cudaError_t launch_append_convert(const AppendParams& params, DType dtype, cudaStream_t stream) {
  return launch_for(params, dtype, stream);
}

cudaError_t launch_rotate(const RotateParams& params, DType dtype, cudaStream_t stream) {
  return launch_for(params, dtype, stream);
}

}  // namespace kvattn
