// Exported: what nvcc's generated host code calls. Prototypes after crt/host_runtime.h and
// crt/device_functions.h of CUDA 13.0.
#include <cuda_runtime_api.h>

#include <vector>

#include "harness/simt/cudart/launch.h"

using namespace kv::simt::cudart;

namespace {

/// What `<<<>>>` pushed and the kernel's stub will pop; one stack for each thread.
struct Configuration {
  dim3 grid, block;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

std::vector<Configuration>& configurations() {
  thread_local std::vector<Configuration> stack;
  return stack;
}

Image* image_of(void** handle) { return reinterpret_cast<Image*>(handle); }

/// Registration has nobody to report to.
void quietly(auto&& body) {
  (void)api_always([&](Runtime& runtime) {
    body(runtime);
    return cudaSuccess;
  });
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the toolkit chose these names
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  void** handle = nullptr;
  quietly(
      [&](Runtime& runtime) { handle = reinterpret_cast<void**>(runtime.images.add(wrapper)); });
  return handle;
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  quietly([&](Runtime& runtime) {
    if (!runtime.images.contains(image_of(handle))) return;
    // The code goes away now; host memory may already have gone.
    runtime.timeline.drop_host_work();
    runtime.timeline.complete_all();
    runtime.images.remove(image_of(handle));
  });
}

char __cudaInitModule(void** handle) {
  quietly([&](Runtime& runtime) { runtime.images.place_managed(image_of(handle)); });
  return 1;
}

void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* name, int,
                            uint3*, uint3*, dim3*, dim3*, int*) {
  quietly(
      [&](Runtime& runtime) { runtime.images.add_kernel(image_of(handle), host_function, name); });
}

void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* name, int,
                       size_t bytes, int, int) {
  quietly([&](Runtime& runtime) {
    if (!name) return;
    runtime.images.add_variable(image_of(handle), host_variable, {.name = name, .bytes = bytes});
  });
}

void __cudaRegisterManagedVar(void** handle, void** host_variable, char*, const char* name, int,
                              size_t bytes, int, int) {
  quietly([&](Runtime& runtime) {
    if (!name) return;
    runtime.images.add_variable(image_of(handle), host_variable,
                                {.name = name, .bytes = bytes, .managed = host_variable});
  });
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void* stream) {
  configurations().push_back({grid, block, shared_bytes, static_cast<cudaStream_t>(stream)});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  auto& stack = configurations();
  if (stack.empty() || !grid || !block || !shared_bytes || !stream) {
    return cudaErrorMissingConfiguration;
  }
  const Configuration top = stack.back();
  stack.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  return cudaGetKernel(kernel, host_function);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  return api([&](Runtime& runtime) {
    return launch(runtime, {.name = "kernel launch",
                            .function = kernel,
                            .grid = grid,
                            .block = block,
                            .arguments = arguments,
                            .dynamic_shared_bytes = shared_bytes,
                            .stream = stream});
  });
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
