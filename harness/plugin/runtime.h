// Purpose: the CUDA runtime that a plugin is put on, as a table of functions found at run time.
// Contract: kverify links no CUDA. load_runtime() brings exactly one libcudart.so.13 into the
// process, globally, before any plugin: the drop-in of harness/simt (cpu) or the real one (cuda).
// Call it once in a process. Everything that is missing is an environment error (exit 3) that says
// what was looked for and what to do.
// Example: auto runtime = load_runtime(DeviceKind::kCpu); runtime->malloc_device(&pointer, 64);
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/core/result.h"
#include "harness/simt/control/kv_simt_control.h"

namespace kv {

enum class DeviceKind : uint8_t { kCpu, kCuda };
/// "cpu" or "cuda".
const char* device_name(DeviceKind device);

/// cudaMemcpyKind.
enum class CopyKind : int { kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3 };

struct CudaRuntime {
  DeviceKind device = DeviceKind::kCpu;
  std::string path;                             // file that was loaded
  void* handle = nullptr;                       // of dlopen
  const kv_simt_control_v1* control = nullptr;  // CPU device only

  int (*malloc_device)(void** pointer, size_t bytes) = nullptr;
  int (*free_device)(void* pointer) = nullptr;
  int (*copy)(void* to, const void* from, size_t bytes, CopyKind kind) = nullptr;
  int (*fill)(void* to, int byte, size_t bytes) = nullptr;
  int (*create_stream)(void** stream, unsigned flags) = nullptr;
  int (*destroy_stream)(void* stream) = nullptr;
  int (*synchronize_stream)(void* stream) = nullptr;
  int (*begin_capture)(void* stream, int mode) = nullptr;
  int (*end_capture)(void* stream, void** graph) = nullptr;
  int (*instantiate_graph)(void** launchable, void* graph, unsigned long long flags) = nullptr;
  int (*launch_graph)(void* launchable, void* stream) = nullptr;
  int (*destroy_graph)(void* graph) = nullptr;
  int (*destroy_graph_launch)(void* launchable) = nullptr;
  int (*last_error)() = nullptr;
  int (*device_count)(int* count) = nullptr;
  int (*memory_info)(size_t* free_bytes, size_t* total_bytes) = nullptr;
  int (*device_attribute)(int* value, int attribute, int device) = nullptr;
  const char* (*error_name)(int code) = nullptr;
  const char* (*error_text)(int code) = nullptr;

  /// "cudaErrorNoDevice (100): no CUDA-capable device is detected".
  std::string describe(int code) const;
};

/// Files tried for a device, in order.
std::vector<std::string> runtime_candidates(DeviceKind device);

/// Of the library that executes cases on the CPU device: results that are kept are only of it. ""
/// where there is none.
Result<std::string> hash_of_cpu_device();

Result<CudaRuntime> load_runtime(DeviceKind device);

}  // namespace kv
