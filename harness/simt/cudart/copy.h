// Purpose: copies and fills, judged at the call and carried out in stream order.
// Contract: as "API synchronization behavior" of the CUDA Runtime API says,
//   - pageable source: taken at the call (except under capture);
//   - pageable destination: the call returns when the copy is done;
//   - pinned memory and asynchronous call: read or written when the copy runs, which is late; what
//     the program changes in such a source before is a finding;
//   - synchronous call between host and device: done when it returns;
//   - device to device, and fills of device memory: asynchronous even without Async in the name.
#pragma once

#include <cuda_runtime_api.h>

#include "harness/simt/cudart/runtime.h"

namespace kv::simt::cudart {

struct CopyCall {
  const char* name = "";  // of the exported function, for findings
  void* to = nullptr;
  const void* from = nullptr;
  size_t width_bytes = 0;  // of a row
  size_t rows = 1;
  size_t to_pitch_bytes = 0, from_pitch_bytes = 0;  // between rows; ignored for one row
  cudaMemcpyKind kind = cudaMemcpyDefault;
  cudaStream_t stream = nullptr;
  bool asynchronous = false;
};
cudaError_t copy(Runtime& runtime, const CopyCall& call);

struct FillCall {
  const char* name = "";
  void* to = nullptr;
  int value = 0;  // its low byte
  size_t width_bytes = 0;
  size_t rows = 1;
  size_t pitch_bytes = 0;
  cudaStream_t stream = nullptr;
};
cudaError_t fill(Runtime& runtime, const FillCall& call);

}  // namespace kv::simt::cudart
