#include "kvattn/pool.h"

namespace kvattn {

// A failing cudaFree has no remedy here; the error stays in CUDA's own state.
void DeviceFree::operator()(void* p) const { static_cast<void>(cudaFree(p)); }

StatusOr<DeviceMemory> allocate_device(uint64_t bytes) {
  void* p = nullptr;
  if (cudaError_t error = cudaMalloc(&p, bytes); error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // the failure is reported here, not by a later launch
    return failed("device memory: no ", bytes, " bytes: ", cudaGetErrorString(error));
  }
  return DeviceMemory(p);
}

}  // namespace kvattn
