// Purpose: a list of page copies as few launches of copy_slots.
// Contract: the result is that of the copies done one after the other. A launch ends where a copy
// reads slots that one before it writes, or writes slots that one before it reads or writes.
// Example:  KVATTN_RETURN_IF_ERROR(copy_slots(copies, pool, stream));
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
};

/// How many of the first copies may be one launch; 0 for none.
size_t independent_copies(std::span<const SlotCopy> copies);

Status copy_slots(std::span<const SlotCopy> copies, const StoreSize& size, const PoolPlace& pool,
                  cudaStream_t stream);

}  // namespace kvattn
