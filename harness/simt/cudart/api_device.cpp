// Exported: the one device and what it is like.
#include <cuda_runtime_api.h>

#include <cstdio>

#include "harness/simt/cudart/capture.h"
#include "harness/simt/cudart/runtime.h"

using namespace kv::simt::cudart;

namespace {

constexpr char kPciBusId[] = "0000:00:00.0";

cudaError_t device_is_known(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

/// What cudaDeviceGetLimit answers: the defaults of a real device. Setting changes nothing here.
size_t limit_bytes(cudaLimit limit) {
  switch (limit) {
    case cudaLimitStackSize:
      return 1024;
    case cudaLimitPrintfFifoSize:
      return 1 << 20;
    case cudaLimitMallocHeapSize:
      return 8 << 20;
    case cudaLimitMaxL2FetchGranularity:
      return 128;
    default:
      return 0;
  }
}

/// There is no driver behind this device, so it has no entry points.
cudaError_t no_driver(const char* symbol, void** function,
                      cudaDriverEntryPointQueryResult* status) {
  return api([&](Runtime&) {
    if (!symbol || !function) return cudaErrorInvalidValue;
    *function = nullptr;
    if (status) *status = cudaDriverEntryPointSymbolNotFound;
    return status ? cudaSuccess : cudaErrorSymbolNotFound;
  });
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  return api_always([&](Runtime&) {
    if (!count) return cudaErrorInvalidValue;
    *count = 1;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return api_always([&](Runtime&) {
    if (!device) return cudaErrorInvalidValue;
    *device = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return api([&](Runtime&) { return device_is_known(device); });
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }

cudaError_t cudaSetDeviceFlags(unsigned) {
  return api([](Runtime&) { return cudaSuccess; });
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return api([&](Runtime&) {
    if (!flags) return cudaErrorInvalidValue;
    *flags = cudaDeviceScheduleAuto;
    return cudaSuccess;
  });
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  return wanted ? cudaGetDevice(device) : cudaErrorInvalidValue;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return api_always([&](Runtime& runtime) {
    if (!properties) return cudaErrorInvalidValue;
    if (device != 0) return cudaErrorInvalidDevice;
    *properties = properties_of(runtime.model(), runtime.memory_bytes());
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return api_always([&](Runtime& runtime) {
    if (!value) return cudaErrorInvalidValue;
    if (device != 0) return cudaErrorInvalidDevice;
    const auto found = attribute_of(runtime.model(), runtime.memory_bytes(), attribute);
    if (!found) return cudaErrorInvalidValue;
    *value = *found;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return api([](Runtime& runtime) { return runtime.synchronize_device(); });
}

cudaError_t cudaDeviceReset() {
  return api_always([](Runtime& runtime) {
    runtime.timeline.complete_all();
    runtime.forget_context();
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return api([&](Runtime&) {
    if (!value) return cudaErrorInvalidValue;
    *value = limit_bytes(limit);
    return *value ? cudaSuccess : cudaErrorUnsupportedLimit;
  });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t) {
  return api(
      [&](Runtime&) { return limit_bytes(limit) ? cudaSuccess : cudaErrorUnsupportedLimit; });
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return api([&](Runtime&) {
    if (!config) return cudaErrorInvalidValue;
    *config = cudaFuncCachePreferNone;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  return api([](Runtime&) { return cudaSuccess; });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  return api([&](Runtime&) {
    if (device != 0) return cudaErrorInvalidDevice;
    if (!text || bytes < static_cast<int>(sizeof kPciBusId)) return cudaErrorInvalidValue;
    std::snprintf(text, static_cast<size_t>(bytes), "%s", kPciBusId);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return api([&](Runtime&) {
    if (!can) return cudaErrorInvalidValue;
    if (device != 0 || peer != 0) return cudaErrorInvalidDevice;
    *can = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return api([](Runtime&) { return cudaErrorInvalidDevice; });
}

cudaError_t cudaDeviceDisablePeerAccess(int) {
  return api([](Runtime&) { return cudaErrorPeerAccessNotEnabled; });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return api_always([&](Runtime&) {
    if (!version) return cudaErrorInvalidValue;
    *version = CUDART_VERSION;
    return cudaSuccess;
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

cudaError_t cudaProfilerStart() {
  return api([](Runtime&) { return cudaSuccess; });
}

cudaError_t cudaProfilerStop() {
  return api([](Runtime&) { return cudaSuccess; });
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* status) {
  return no_driver(symbol, function, status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  return no_driver(symbol, function, status);
}
