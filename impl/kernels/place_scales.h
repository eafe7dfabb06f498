// Purpose: the scales of new tokens, put beside the slots that append() is about to write.
// Contract: a token's scales go to its slot, or, where pages have scales, those of the token in the
// first slot of a page to the page; the others' are not looked at. At least one token; block tables
// name pages for all of their slots.
// Example:  launch_place_scales({.key = k, .value = v, .key_scale = ..., .tokens = 7}, stream);
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kvattn {

struct PlaceScalesParams {
  const float *key, *value;        // [tokens]
  float *key_scale, *value_scale;  // [pages], or [pages, page_slots]
  const int32_t *block_table, *token_offsets, *first_slots;
  int64_t block_table_stride;
  int32_t tokens, requests, page_shift;  // log2(page_slots)
  bool by_page;
};

cudaError_t launch_place_scales(const PlaceScalesParams &params, cudaStream_t stream);

}  // namespace kvattn
