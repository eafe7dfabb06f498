// Purpose: states of one attention over disjoint sets of keys, added up: a prefix that many
// requests share and what each has of its own, or parts of a context that were attended one by one.
// Contract: a state is O, in the output dtype, and the natural LSE; one with LSE = -inf is empty
// and its O is not looked at. Dimensions are a multiple of 8, rows 16-byte aligned. States are
// added in their order: bits depend on a row's own states only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kvattn/tensor.h"

namespace kvattn {

struct MergeParams {
  const void *outputs;  // [states][tokens][query_heads][value_dim]
  const float *lses;    // [states][tokens][query_heads]
  void *output;
  float *lse;
  int64_t state_stride, token_stride, head_stride;  // of outputs
  int64_t lses_state_stride, lses_token_stride, lses_head_stride;
  int64_t output_token_stride, output_head_stride, lse_token_stride, lse_head_stride;
  int32_t states, tokens, query_heads, value_dim;
};

cudaError_t launch_merge_states(const MergeParams &params, DType dtype, cudaStream_t stream);

}  // namespace kvattn
