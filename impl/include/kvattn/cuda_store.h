// Purpose: a Store in device memory, with kvattn's attention over it.
// Contract: one allocation for pages, and one for each tensor of a step, all made by create; every
// call enqueues on `stream`, which the caller owns. Host pages are pageable host memory. All layers
// have the shape given, but for window_left, which is their group's.
// Example:  auto store = *make_cuda_store(store_size(config, layout), shape, {.stream = stream});
#pragma once

#include <cuda_runtime_api.h>

#include "kvattn/attention.h"
#include "kvattn/store.h"

namespace kvattn {

/// Ok, or why no such store is made. No device work.
Status check_cuda_store(const StoreSize& size, const AttentionShape& shape);
struct CudaStoreOptions {
  cudaStream_t stream = nullptr;
  bool batch_invariant = false;  // as BatchDescription::batch_invariant, for all steps
  HeadInputs heads = {};
};
StatusOr<std::unique_ptr<Store>> make_cuda_store(const StoreSize& size, const AttentionShape& shape,
                                                 const CudaStoreOptions& options);

}  // namespace kvattn
