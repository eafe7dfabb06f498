// FlashInfer's paged decode (one query row for each request), as its own bindings call it.
#include "ci/peers/flashinfer/narrow.cuh"
// The order matters: narrow.cuh comes first.
#include <flashinfer/attention/decode.cuh>
#include <flashinfer/attention/default_decode_params.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/attention/variants.cuh>

#include "ci/peers/flashinfer/batch.h"

namespace peer {
namespace {

using namespace flashinfer;
using Params = BatchDecodeParams<half, half, half, int32_t>;
using Variant = DefaultAttention</*custom mask*/ false, /*window*/ true, /*soft cap*/ false,
                                 /*ALiBi*/ false>;
constexpr auto kPositions = PosEncodingMode::kNone;
constexpr uint64_t kSlackBytes = 4096;  // alignment of FlashInfer's own allocator

auto estimation(const Heads& heads) {
  auto chosen =
      BatchDecodeWithPagedKVCacheWorkEstimationDispatched<1, kHeadDim, kPositions, Variant, Params>;
  if (heads.query / heads.kv == 4) {
    chosen = BatchDecodeWithPagedKVCacheWorkEstimationDispatched<4, kHeadDim, kPositions, Variant,
                                                                 Params>;
  }
  return chosen;
}

}  // namespace

Sizes decode_sizes(const HostBatch& batch) {
  std::vector<int32_t> pages = batch.page_offsets;
  bool split = false;
  uint32_t most_blocks = 0, pages_of_split = 1, split_rows = 0, grid_y = 0;
  const cudaError_t error = estimation(batch.heads)(
      split, most_blocks, pages_of_split, split_rows, grid_y, batch.rows(), pages.data(),
      batch.heads.query, batch.heads.page_slots, false, nullptr);
  FLASHINFER_CHECK(error == cudaSuccess, "the work of a batch cannot be estimated");
  Sizes sizes;
  sizes.int_bytes = (3 * uint64_t{split_rows} + 2) * sizeof(int32_t) + split_rows + kSlackBytes;
  if (!split) return sizes;
  sizes.float_bytes =
      uint64_t{batch.heads.query} * split_rows * (kHeadDim + 1) * sizeof(float) + kSlackBytes;
  for (uint32_t b = 0; b < batch.rows(); ++b) {
    const auto count = uint32_t(pages[b + 1] - pages[b]);
    sizes.splits = std::max(sizes.splits, (count + pages_of_split - 1) / pages_of_split);
  }
  return sizes;
}

cudaError_t decode(const HostBatch& batch, const Attend& call) {
  std::vector<int32_t> pages = batch.page_offsets;
  std::vector<char> staging(call.sizes.int_bytes);
  DecodePlanInfo plan;
  cudaError_t error = DecodePlan<kHeadDim, kPositions, Variant, Params>(
      call.float_workspace, call.sizes.float_bytes, call.int_workspace, staging.data(),
      staging.size(), plan, pages.data(), batch.rows(), batch.heads.query, batch.heads.page_slots,
      /*CUDA graph*/ false, call.stream, estimation(batch.heads));
  if (error != cudaSuccess) return error;
  const Cache& cache = call.cache;
  const paged_kv_t<half, int32_t> kv(batch.heads.kv, batch.heads.page_slots, kHeadDim, batch.rows(),
                                     QKVLayout::kNHD, cache.key, cache.value, cache.strides,
                                     cache.page_indices, cache.page_offsets, cache.last_page_slots);
  Params params(call.query, /*rope offsets*/ nullptr, kv, call.output, call.lse,
                /*ALiBi*/ nullptr, batch.heads.query, int32_t(call.query_token_stride),
                int32_t(call.query_head_stride), call.window_left, /*soft cap*/ 0, call.scale,
                /*rope scale*/ 1, /*rope theta*/ 1e4f);
  const auto in_plan = [&](int64_t offset) {
    return GetPtrFromBaseOffset<int32_t>(call.int_workspace, offset);
  };
  params.request_indices = in_plan(plan.request_indices_offset);
  params.kv_tile_indices = in_plan(plan.kv_tile_indices_offset);
  params.o_indptr = in_plan(plan.o_indptr_offset);
  params.kv_chunk_size_ptr = in_plan(plan.kv_chunk_size_ptr_offset);
  params.padded_batch_size = uint32_t(plan.padded_batch_size);
  half* partial_outputs = nullptr;
  float* partial_lse = nullptr;
  if (plan.split_kv) {
    partial_outputs = GetPtrFromBaseOffset<half>(call.float_workspace, plan.v_offset);
    partial_lse = GetPtrFromBaseOffset<float>(call.float_workspace, plan.s_offset);
  }
  error = BatchDecodeWithPagedKVCacheDispatched<kHeadDim, kPositions, Variant>(
      params, partial_outputs, partial_lse, call.stream);
  return error == cudaSuccess ? cudaStreamSynchronize(call.stream) : error;  // `staging` was read
}

cudaError_t append(const Append& call) {
  const Cache& cache = call.cache;
  const paged_kv_t<half, int32_t> kv(call.heads.kv, call.heads.page_slots, kHeadDim, call.rows,
                                     QKVLayout::kNHD, cache.key, cache.value, cache.strides,
                                     cache.page_indices, cache.page_offsets, cache.last_page_slots);
  return AppendPagedKVCache<half, int32_t>(
      kv, call.key, call.value, call.row_of_token, call.slot_of_token, call.tokens,
      size_t(call.key_strides[0]), size_t(call.key_strides[1]), size_t(call.value_strides[0]),
      size_t(call.value_strides[1]), call.stream);
}

}  // namespace peer
