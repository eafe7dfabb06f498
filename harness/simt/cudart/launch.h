// Purpose: from a launch call to an operation of a stream.
// Contract: what the real runtime refuses at the call is refused here, with an API finding, because
// `<<<>>>` drops the error; what only the device can know is found when the kernel runs.
#pragma once

#include <cuda_runtime_api.h>

#include "harness/simt/cudart/runtime.h"

namespace kv::simt::cudart {

struct LaunchCall {
  const char* name = "";           // of the exported function, for findings
  const void* function = nullptr;  // host function or cudaKernel_t
  dim3 grid, block;
  void** arguments = nullptr;  // one pointer for each parameter of the kernel
  size_t dynamic_shared_bytes = 0;
  cudaStream_t stream = nullptr;
  bool cooperative = false;
};

cudaError_t launch(Runtime& runtime, const LaunchCall& call);

/// The kernel of a function, resolved, or an error that was reported for `call`.
struct FoundKernel {
  cudaError_t error = cudaSuccess;
  KernelRecord* record = nullptr;
  Kernel* kernel = nullptr;
  const KernelInfo* info = nullptr;
};
FoundKernel find_kernel(Runtime& runtime, const char* call, const void* function);

/// Blocks of `block_threads` threads that one multiprocessor holds at once.
int resident_blocks(const Model& model, const KernelInfo& info, uint32_t block_threads,
                    uint64_t dynamic_shared_bytes);

}  // namespace kv::simt::cudart
