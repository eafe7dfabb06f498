// Purpose: the kernels of the baseline, and what they hand each other in the workspace.
// Contract: a *plane* is one request's rows over one K/V head: plane = request * kv_heads + head.
// Its row r is query r / group of the request with head r % group of the head group. Every plane
// has room for rows_max rows and slots_max slots; what a request does not have is zero. Strides
// count elements. Pointers were validated.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kvattn/tensor.h"

namespace kvattn::baseline {

/// Data and strides of a tensor view.
struct Strided {
  void *data;
  int64_t stride[3];  // of all dimensions but the innermost
};

struct Rules {
  int32_t causal;  // kvattn::Causal
  int64_t window_left, window_right;
  float scale, softcap;
  const float *alibi_slopes, *sinks;  // or nullptr
  Strided mask;                       // data nullptr: none; [B, H, Q, K], stride 0 where broadcast
  int32_t mask_encoding, mask_dtype;  // kvattn::MaskEncoding, kvattn::DType
  const uint32_t *tree;               // or nullptr
  const int32_t *tree_first_slots;
  int64_t tree_stride;
};

struct Materialised {
  Strided key, value;     // [pages, page_slots, kv_heads, dim]
  Strided query, output;  // [tokens, query_heads, dim]
  Strided lse;            // [tokens, query_heads]
  const int32_t *block_table;
  int64_t table_stride;
  const int32_t *query_offsets, *kv_lengths, *key_begin, *key_end;
  int32_t requests, kv_heads, group, page_slots, dim_k, dim_v;
  int64_t rows_max, slots_max;
  Rules rules;
  // In the workspace, for each plane: [slots][dim_k], [slots][dim_v], [rows][dim_k] and the weights
  // [rows][slots] in the dtype; scores [rows][slots], sums of values [rows][dim_v] and their
  // factors [rows] in fp32.
  void *keys, *values, *queries, *weights;
  float *scores, *sums, *factors;

  int64_t planes() const { return int64_t{requests} * kv_heads; }
};

/// Pages to `keys` and `values`, queries to `queries`.
cudaError_t launch_gather(const Materialised &m, DType dtype, cudaStream_t stream);
/// `scores` to `weights`, relative to the row's maximum, and `factors`; writes LSE.
cudaError_t launch_softmax(const Materialised &m, DType dtype, cudaStream_t stream);
/// `sums` times `factors` to the output.
cudaError_t launch_scatter(const Materialised &m, DType dtype, cudaStream_t stream);

struct States {
  Strided outputs, lses;  // [states, tokens, query_heads, dim], [states, tokens, query_heads]
  Strided output, lse;
  int32_t states, tokens, query_heads, dim;
};
/// Softmax over the LSEs of the states, in natural units, times their outputs.
cudaError_t launch_merge(const States &s, DType dtype, cudaStream_t stream);

struct Appended {
  Strided key_cache, value_cache, key, value;
  const int32_t *block_table;
  int64_t table_stride;
  const int32_t *token_offsets, *first_slots;
  int32_t tokens, requests, kv_heads, page_slots, dim_k, dim_v;
};
cudaError_t launch_append(const Appended &a, DType dtype, cudaStream_t stream);

}  // namespace kvattn::baseline
