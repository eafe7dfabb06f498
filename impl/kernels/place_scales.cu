// Puts the scales of new tokens beside their slots, or beside their pages.
//
// Version 1: one thread for each token, which finds its request and its page as append does.
#include "impl/kernels/batch.cuh"
#include "impl/kernels/place_scales.h"

namespace kvattn {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) place_scales_kernel(const PlaceScalesParams p) {
  const int32_t token = blockIdx.x * kThreads + threadIdx.x;
  if (token >= p.tokens) return;
  const int32_t request =
      find_request(p.requests, token, [&](int32_t b) { return p.token_offsets[b]; });
  const int32_t slot = p.first_slots[request] + token - p.token_offsets[request];
  const int64_t page = p.block_table[request * p.block_table_stride + (slot >> p.page_shift)];
  const int64_t offset = slot & ((1 << p.page_shift) - 1);
  if (p.by_page && offset != 0) return;
  const int64_t at = p.by_page ? page : (page << p.page_shift) + offset;
  p.key_scale[at] = p.key[token];
  p.value_scale[at] = p.value[token];
}

}  // namespace

cudaError_t launch_place_scales(const PlaceScalesParams &params, cudaStream_t stream) {
  const int32_t blocks = (params.tokens - 1) / kThreads + 1;
  place_scales_kernel<<<blocks, kThreads, 0, stream>>>(params);
  return cudaGetLastError();
}

}  // namespace kvattn
