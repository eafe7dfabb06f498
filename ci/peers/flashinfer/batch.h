// Purpose: one call as FlashInfer wants it, between the adapter and the two families of kernels.
// Contract: `host` is what the plan is made from; device pointers are only passed on. A function
// below throws flashinfer::Error, or returns what the CUDA runtime said.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

namespace peer {

constexpr uint32_t kHeadDim = 128;

struct Heads {
  uint32_t query = 0, kv = 0, page_slots = 0;
};

/// What a plan depends on.
struct HostBatch {
  Heads heads;
  std::vector<int32_t> query_offsets;  // [rows + 1]
  std::vector<int32_t> page_offsets;   // [rows + 1]
  uint32_t rows() const { return uint32_t(page_offsets.size() - 1); }
};

struct Sizes {
  uint64_t float_bytes = 0, int_bytes = 0;
  uint32_t splits = 1;  // of the row that has most
};

struct Cache {
  half *key = nullptr, *value = nullptr;
  int64_t strides[3] = {};  // page, slot, head
  int32_t *page_indices = nullptr, *page_offsets = nullptr, *last_page_slots = nullptr;
};

struct Attend {
  Cache cache;
  half *query = nullptr, *output = nullptr;
  float* lse = nullptr;
  int32_t* query_offsets = nullptr;
  int64_t query_token_stride = 0, query_head_stride = 0;
  float scale = 0;
  int32_t window_left = -1;
  bool causal = false;
  char *float_workspace = nullptr, *int_workspace = nullptr;
  Sizes sizes;
  cudaStream_t stream = nullptr;
};

Sizes decode_sizes(const HostBatch& batch);
cudaError_t decode(const HostBatch& batch, const Attend& call);
Sizes prefill_sizes(const HostBatch& batch);
cudaError_t prefill(const HostBatch& batch, const Attend& call);

struct Append {
  Cache cache;
  Heads heads;
  uint32_t rows = 0, tokens = 0;
  half *key = nullptr, *value = nullptr;
  int64_t key_strides[2] = {}, value_strides[2] = {};         // token, head
  int32_t *row_of_token = nullptr, *slot_of_token = nullptr;  // device
  cudaStream_t stream = nullptr;
};

cudaError_t append(const Append& call);

}  // namespace peer
