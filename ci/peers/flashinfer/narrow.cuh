// Purpose: FlashInfer's dispatch, narrowed to what this adapter compiles: two group sizes for
// decode, and for prefill the one tile that FlashInfer itself chooses on sm_80 and above.
// Contract: included before any other header of FlashInfer that dispatches. What is left out is an
// error of FlashInfer's own kind, never another kernel.
#pragma once

#include <flashinfer/utils.cuh>

#undef DISPATCH_GQA_GROUP_SIZE
#define DISPATCH_GQA_GROUP_SIZE(group_size, GROUP_SIZE, ...) \
  if (group_size == 1) {                                     \
    constexpr size_t GROUP_SIZE = 1;                         \
    __VA_ARGS__                                              \
  } else if (group_size == 4) {                              \
    constexpr size_t GROUP_SIZE = 4;                         \
    __VA_ARGS__                                              \
  } else {                                                   \
    FLASHINFER_ERROR("a group size that is not compiled");   \
  }

#undef DISPATCH_COMPUTE_CAP_DECODE_NUM_STAGES_SMEM
#define DISPATCH_COMPUTE_CAP_DECODE_NUM_STAGES_SMEM(capacity, NUM_STAGES_SMEM, ...) \
  if ((capacity).first >= 8) {                                                      \
    constexpr uint32_t NUM_STAGES_SMEM = 2;                                         \
    __VA_ARGS__                                                                     \
  } else {                                                                          \
    FLASHINFER_ERROR("an architecture that is not compiled");                       \
  }

// FlashInfer takes the largest of 8, 4, 2, 1 that is not above max_mma_kv.
#undef DISPATCH_NUM_MMA_KV
#define DISPATCH_NUM_MMA_KV(max_mma_kv, NUM_MMA_KV, ...)                                 \
  constexpr size_t NUM_MMA_KV = CTA_TILE_Q == 16 ? 2 : CTA_TILE_Q == 64 ? 8 : 4;         \
  if ((max_mma_kv) < NUM_MMA_KV || (NUM_MMA_KV < 8 && (max_mma_kv) >= 2 * NUM_MMA_KV)) { \
    FLASHINFER_ERROR("a tile of keys that is not compiled");                             \
  } else {                                                                               \
    __VA_ARGS__                                                                          \
  }
