#include "harness/plugin/runtime.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "harness/core/file_hash.h"
#include "harness/plugin/text.h"

namespace kv {
namespace {

constexpr const char* kSoname = "libcudart.so.13";

std::filesystem::path executable_folder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

template <class Function>
bool find(void* handle, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (function == nullptr) missing.append(missing.empty() ? "" : ", ").append(name);
  return function != nullptr;
}

Result<void> find_functions(CudaRuntime& r) {
  std::string missing;
  find(r.handle, "cudaMalloc", r.malloc_device, missing);
  find(r.handle, "cudaFree", r.free_device, missing);
  find(r.handle, "cudaMemcpy", r.copy, missing);
  find(r.handle, "cudaMemset", r.fill, missing);
  find(r.handle, "cudaStreamCreateWithFlags", r.create_stream, missing);
  find(r.handle, "cudaStreamDestroy", r.destroy_stream, missing);
  find(r.handle, "cudaStreamSynchronize", r.synchronize_stream, missing);
  find(r.handle, "cudaStreamBeginCapture", r.begin_capture, missing);
  find(r.handle, "cudaStreamEndCapture", r.end_capture, missing);
  find(r.handle, "cudaGraphInstantiate", r.instantiate_graph, missing);
  find(r.handle, "cudaGraphLaunch", r.launch_graph, missing);
  find(r.handle, "cudaGraphDestroy", r.destroy_graph, missing);
  find(r.handle, "cudaGraphExecDestroy", r.destroy_graph_launch, missing);
  find(r.handle, "cudaGetLastError", r.last_error, missing);
  find(r.handle, "cudaGetDeviceCount", r.device_count, missing);
  find(r.handle, "cudaMemGetInfo", r.memory_info, missing);
  find(r.handle, "cudaDeviceGetAttribute", r.device_attribute, missing);
  find(r.handle, "cudaGetErrorName", r.error_name, missing);
  find(r.handle, "cudaGetErrorString", r.error_text, missing);
  if (missing.empty()) return {};
  return environment_error("'" + r.path + "' is not a usable CUDA 13 runtime: it lacks " + missing);
}

Result<void> find_control(CudaRuntime& r) {
  const auto get = reinterpret_cast<kv_simt_control_fn>(dlsym(r.handle, "kv_simt_control"));
  r.control = get == nullptr ? nullptr : get(KV_SIMT_CONTROL_VERSION);
  if (r.control != nullptr && r.control->struct_bytes >= sizeof(kv_simt_control_v1)) return {};
  return environment_error("'" + r.path + "' is not the CPU device of this kverify: it has no " +
                           "control table of version " + std::to_string(KV_SIMT_CONTROL_VERSION) +
                           ". Rebuild the target 'cudart_simt', or unset KVERIFY_SIMT.");
}

Result<void> require_gpu(const CudaRuntime& r) {
  if (dlsym(r.handle, "kv_simt_control") != nullptr)
    return environment_error("'" + r.path +
                             "' is kverify's CPU device, not the real CUDA runtime: "
                             "take its folder out of LD_LIBRARY_PATH, or set KVERIFY_CUDART.");
  int count = 0;
  const int code = r.device_count(&count);
  if (code == 0 && count > 0) return {};
  return environment_error("this machine has no usable GPU: cudaGetDeviceCount said " +
                           (code == 0 ? "0 devices" : r.describe(code)) +
                           ". Use --device cpu, which needs none.");
}

Result<void*> open_first(DeviceKind device, std::string& path) {
  std::string tried;
  for (const std::string& candidate : runtime_candidates(device)) {
    const bool is_name = candidate.find('/') == std::string::npos;  // searched by the loader
    if (!is_name && !std::filesystem::exists(candidate)) {
      tried += "\n  " + candidate + ": no such file";
      continue;
    }
    path = candidate;
    if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_GLOBAL)) return handle;
    tried += "\n  " + printable(dlerror());
  }
  const bool cpu = device == DeviceKind::kCpu;
  return environment_error(
      std::string(cpu ? "the CPU device" : "the CUDA runtime") + " (" + kSoname +
      ") was not found. Tried:" + tried +
      (cpu ? "\nBuild the target 'cudart_simt', or set KVERIFY_SIMT to the library's path."
           : "\nInstall the CUDA 13 runtime, or set KVERIFY_CUDART to the library's path."));
}

}  // namespace

const char* device_name(DeviceKind device) { return device == DeviceKind::kCpu ? "cpu" : "cuda"; }

std::string CudaRuntime::describe(int code) const {
  const char* name = error_name(code);
  const char* text = error_text(code);
  return printable(name == nullptr ? "unnamed error" : name, 100) + " (" + std::to_string(code) +
         "): " + printable(text == nullptr ? "" : text, 300);
}

std::vector<std::string> runtime_candidates(DeviceKind device) {
  const std::filesystem::path folder = executable_folder();
  if (device == DeviceKind::kCpu) {
    if (const auto chosen = environment("KVERIFY_SIMT"); !chosen.empty()) return {chosen};
    return {(folder.parent_path() / "lib/simt" / kSoname).string()};
  }
  if (const auto chosen = environment("KVERIFY_CUDART"); !chosen.empty()) return {chosen};
  std::vector<std::string> paths;
  if (const auto home = environment("CUDA_HOME"); !home.empty()) {
    paths.push_back(home + "/lib64/" + kSoname);
    paths.push_back(home + "/lib/" + kSoname);
  }
  paths.push_back(kSoname);
  for (const char* root : {"/usr/local/cuda", "/usr/local/cuda-13.0", "/opt/cuda"})
    for (const char* lib : {"lib64", "lib", "targets/x86_64-linux/lib"})
      paths.push_back(std::string(root) + "/" + lib + "/" + kSoname);
  return paths;
}

Result<std::string> hash_of_cpu_device() {
  for (const std::string& candidate : runtime_candidates(DeviceKind::kCpu)) {
    if (std::filesystem::exists(candidate)) return hash_of_file(candidate);
  }
  return std::string();
}

Result<CudaRuntime> load_runtime(DeviceKind device) {
  CudaRuntime runtime;
  runtime.device = device;
  KV_ASSIGN_OR_RETURN(runtime.handle, open_first(device, runtime.path));
  KV_RETURN_IF_ERROR(find_functions(runtime));
  if (device == DeviceKind::kCpu) {
    KV_RETURN_IF_ERROR(find_control(runtime));
  } else {
    KV_RETURN_IF_ERROR(require_gpu(runtime));
  }
  return runtime;
}

}  // namespace kv
