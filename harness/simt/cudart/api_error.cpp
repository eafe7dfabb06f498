// Exported: errors. These work whatever state the device is in.
#include <cuda_runtime_api.h>

#include "harness/simt/cudart/errors.h"
#include "harness/simt/cudart/runtime.h"

using namespace kv::simt::cudart;

namespace {

/// A sticky error is everybody's last error.
cudaError_t current_error() {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  return runtime.device_error != cudaSuccess ? runtime.device_error : last_error();
}

}  // namespace

cudaError_t cudaGetLastError() {
  const cudaError_t error = current_error();
  last_error() = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return current_error(); }

const char* cudaGetErrorName(cudaError_t error) { return error_name(error); }

const char* cudaGetErrorString(cudaError_t error) { return error_sentence(error); }
