// FlashInfer's paged prefill (any number of query rows for each request), as its own bindings call
// it.
#include "ci/peers/flashinfer/narrow.cuh"
// The order matters: narrow.cuh comes first.
#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/attention/variants.cuh>

#include "ci/peers/flashinfer/batch.h"

namespace peer {
namespace {

using namespace flashinfer;
using Params = BatchPrefillPagedParams<half, half, half, int32_t>;
using Variant = DefaultAttention</*custom mask*/ false, /*window*/ true, /*soft cap*/ false,
                                 /*ALiBi*/ false>;
constexpr uint64_t kSlackBytes = 4096;  // alignment of FlashInfer's own allocator

uint32_t multiprocessors() {
  int count = 0;
  FLASHINFER_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess,
                   "the number of multiprocessors is not known");
  return uint32_t(count);
}

template <uint32_t kTile>
cudaError_t run(const Params& params, half* outputs, float* lse, const Attend& call) {
  if (call.causal) {
    return BatchPrefillWithPagedKVCacheDispatched<kTile, kHeadDim, kHeadDim, PosEncodingMode::kNone,
                                                  false, MaskMode::kCausal, Variant, Params>(
        params, outputs, lse, call.stream);
  }
  return BatchPrefillWithPagedKVCacheDispatched<kTile, kHeadDim, kHeadDim, PosEncodingMode::kNone,
                                                false, MaskMode::kNone, Variant, Params>(
      params, outputs, lse, call.stream);
}

}  // namespace

Sizes prefill_sizes(const HostBatch& batch) {
  std::vector<int32_t> queries = batch.query_offsets, pages = batch.page_offsets;
  const auto [split, split_rows, padded_rows, tile, slots_of_split, requests, query_tiles, kv_tiles,
              merges, outputs] =
      PrefillSplitQOKVIndptr(queries.data(), pages.data(), uint32_t(queries.back()), batch.rows(),
                             batch.heads.query, batch.heads.kv, kHeadDim, batch.heads.page_slots,
                             2 * multiprocessors() / batch.heads.kv, /*CUDA graph*/ false);
  Sizes sizes;
  sizes.int_bytes = (3 * padded_rows + 2 * uint64_t{batch.rows()} + uint64_t(queries.back()) + 4) *
                        sizeof(int32_t) +
                    padded_rows + kSlackBytes;
  if (!split) return sizes;
  sizes.float_bytes =
      uint64_t{batch.heads.query} * padded_rows * tile * (kHeadDim + 1) * sizeof(float) +
      kSlackBytes;
  for (const int32_t k : kv_tiles) sizes.splits = std::max(sizes.splits, uint32_t(k) + 1);
  return sizes;
}

cudaError_t prefill(const HostBatch& batch, const Attend& call) {
  std::vector<int32_t> queries = batch.query_offsets, pages = batch.page_offsets;
  std::vector<char> staging(call.sizes.int_bytes);
  PrefillPlanInfo plan;
  cudaError_t error = PrefillPlan<int32_t>(
      call.float_workspace, call.sizes.float_bytes, call.int_workspace, staging.data(),
      staging.size(), plan, queries.data(), pages.data(), uint32_t(queries.back()), batch.rows(),
      batch.heads.query, batch.heads.kv, kHeadDim, kHeadDim, batch.heads.page_slots,
      /*CUDA graph*/ false, sizeof(half), call.stream);
  if (error != cudaSuccess) return error;
  const Cache& cache = call.cache;
  const paged_kv_t<half, int32_t> kv(batch.heads.kv, batch.heads.page_slots, kHeadDim, batch.rows(),
                                     QKVLayout::kNHD, cache.key, cache.value, cache.strides,
                                     cache.page_indices, cache.page_offsets, cache.last_page_slots);
  Params params(call.query, kv, /*mask*/ nullptr, call.query_offsets, /*mask offsets*/ nullptr,
                /*rope offsets*/ nullptr, call.output, call.lse, /*ALiBi*/ nullptr,
                batch.heads.query, int32_t(call.query_token_stride),
                int32_t(call.query_head_stride), call.window_left, /*soft cap*/ 0, call.scale,
                /*rope scale*/ 1, /*rope theta*/ 1e4f);
  const auto in_plan = [&](int64_t offset) {
    return GetPtrFromBaseOffset<int32_t>(call.int_workspace, offset);
  };
  params.request_indices = in_plan(plan.request_indices_offset);
  params.qo_tile_indices = in_plan(plan.qo_tile_indices_offset);
  params.kv_tile_indices = in_plan(plan.kv_tile_indices_offset);
  params.o_indptr = in_plan(plan.o_indptr_offset);
  params.kv_chunk_size_ptr = in_plan(plan.kv_chunk_size_ptr_offset);
  half* partial_outputs = nullptr;
  float* partial_lse = nullptr;
  if (plan.split_kv) {
    params.merge_indptr = in_plan(plan.merge_indptr_offset);
    partial_outputs = GetPtrFromBaseOffset<half>(call.float_workspace, plan.v_offset);
    partial_lse = GetPtrFromBaseOffset<float>(call.float_workspace, plan.s_offset);
  }
  params.padded_batch_size = uint32_t(plan.padded_batch_size);
  params.max_total_num_rows = uint32_t(plan.total_num_rows);
  DISPATCH_CTA_TILE_Q(plan.cta_tile_q, CTA_TILE_Q,
                      { error = run<CTA_TILE_Q>(params, partial_outputs, partial_lse, call); });
  return error == cudaSuccess ? cudaStreamSynchronize(call.stream) : error;  // `staging` was read
}

}  // namespace peer
