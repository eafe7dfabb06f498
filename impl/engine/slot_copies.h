// Purpose: a list of page copies as few launches of copy_slots.
// Contract: the result is that of the copies done one after the other, scales included: a slot's,
// or a page's with its first slot. A launch ends where a copy reads slots that one before it
// writes, or writes slots that one before it reads or writes. Example:
// KVATTN_RETURN_IF_ERROR(copy_slots(copies, pool, stream));
#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "kvattn/paged_cache.h"
#include "kvattn/store.h"

namespace kvattn {

/// Where the pages of a pool lie. Every group has the same pages.
struct PoolPlace {
  void *key = nullptr, *value = nullptr;  // slot 0 of page 0 of layer 0
  int64_t layer_bytes = 0;                // from layer to layer
  /// Of slots or of pages, in the same order; nullptr where neither have scales of their own.
  float *key_scale = nullptr, *value_scale = nullptr;
  int64_t scale_layer_bytes = 0;
};

/// How many of the first copies may be one launch; 0 for none.
size_t independent_copies(std::span<const SlotCopy> copies);

Status copy_slots(std::span<const SlotCopy> copies, const StoreSize& size, const PoolPlace& pool,
                  cudaStream_t stream);

}  // namespace kvattn
