// Exported: launches, and what kernels are like.
#include <cuda_runtime_api.h>

#include <algorithm>

#include "harness/simt/cudart/launch.h"

using namespace kv::simt::cudart;

namespace {

constexpr int kCarveoutDefault = -1, kCarveoutMax = 100;  // percent

/// Calls `body` with the kernel's record and what is known of it.
cudaError_t with_kernel(Runtime& runtime, const char* call, const void* function, auto&& body) {
  const FoundKernel found = find_kernel(runtime, call, function);
  return found.error == cudaSuccess ? body(*found.record, *found.info) : found.error;
}

cudaError_t set_dynamic_shared(const Runtime& runtime, KernelRecord& record,
                               const kv::simt::KernelInfo& info, int bytes) {
  const int64_t most =
      int64_t{runtime.model().shared_per_block_optin_bytes} - int64_t{info.static_shared_bytes};
  if (bytes < 0 || bytes > most) return cudaErrorInvalidValue;
  record.dynamic_shared_chosen = static_cast<uint32_t>(bytes);
  return cudaSuccess;
}

/// Reads launch attributes that change what is executed; returns an error for those that would
/// have to and cannot.
cudaError_t apply_attributes(Runtime& runtime, const cudaLaunchConfig_t& config, LaunchCall& call) {
  if (config.numAttrs > 0 && !config.attrs) return cudaErrorInvalidValue;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == cudaLaunchAttributeCooperative) {
      call.cooperative = attribute.val.cooperative != 0;
    }
    if (attribute.id != cudaLaunchAttributeClusterDimension) continue;
    const auto& cluster = attribute.val.clusterDim;
    if (uint64_t{cluster.x} * cluster.y * cluster.z <= 1) continue;
    runtime.report_misuse(call.name, "clusters of several blocks are not supported");
    return cudaErrorNotSupported;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes, cudaStream_t stream) {
  return api([&](Runtime& runtime) {
    return launch(runtime, {.name = "cudaLaunchKernel",
                            .function = function,
                            .grid = grid,
                            .block = block,
                            .arguments = arguments,
                            .dynamic_shared_bytes = shared_bytes,
                            .stream = stream});
  });
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, size_t shared_bytes,
                                        cudaStream_t stream) {
  return api([&](Runtime& runtime) {
    return launch(runtime, {.name = "cudaLaunchCooperativeKernel",
                            .function = function,
                            .grid = grid,
                            .block = block,
                            .arguments = arguments,
                            .dynamic_shared_bytes = shared_bytes,
                            .stream = stream,
                            .cooperative = true});
  });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  return api([&](Runtime& runtime) {
    if (!config) return cudaErrorInvalidValue;
    LaunchCall call = {.name = "cudaLaunchKernelExC",
                       .function = function,
                       .grid = config->gridDim,
                       .block = config->blockDim,
                       .arguments = arguments,
                       .dynamic_shared_bytes = config->dynamicSmemBytes,
                       .stream = config->stream};
    const cudaError_t error = apply_attributes(runtime, *config, call);
    return error == cudaSuccess ? launch(runtime, call) : error;
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return api([&](Runtime& runtime) {
    return with_kernel(runtime, "cudaFuncSetAttribute", function,
                       [&](KernelRecord& record, const kv::simt::KernelInfo& info) -> cudaError_t {
                         switch (attribute) {
                           case cudaFuncAttributeMaxDynamicSharedMemorySize:
                             return set_dynamic_shared(runtime, record, info, value);
                           case cudaFuncAttributePreferredSharedMemoryCarveout:
                             return value >= kCarveoutDefault && value <= kCarveoutMax
                                        ? cudaSuccess
                                        : cudaErrorInvalidValue;
                           case cudaFuncAttributeNonPortableClusterSizeAllowed:
                             return cudaSuccess;
                           default:
                             return cudaErrorNotSupported;
                         }
                       });
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return api([&](Runtime& runtime) {
    if (!attributes) return cudaErrorInvalidValue;
    return with_kernel(
        runtime, "cudaFuncGetAttributes", function,
        [&](KernelRecord& record, const kv::simt::KernelInfo& info) {
          *attributes = {};
          attributes->sharedSizeBytes = info.static_shared_bytes;
          attributes->localSizeBytes = info.local_bytes;
          attributes->maxThreadsPerBlock = static_cast<int>(info.max_threads);
          attributes->numRegs = static_cast<int>(std::min(info.registers, 255u));
          attributes->ptxVersion = attributes->binaryVersion = static_cast<int>(runtime.model().sm);
          attributes->maxDynamicSharedSizeBytes = static_cast<int>(record.dynamic_shared_max(info));
          attributes->preferredShmemCarveout = kCarveoutDefault;
          return cudaSuccess;
        });
  });
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  return api([&](Runtime& runtime) {
    return with_kernel(runtime, "cudaFuncSetCacheConfig", function,
                       [](auto&, auto&) { return cudaSuccess; });
  });
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return api([&](Runtime& runtime) {
    const KernelRecord* record = runtime.images.find_kernel(function);
    if (!name) return cudaErrorInvalidValue;
    if (!record) return cudaErrorInvalidDeviceFunction;
    *name = record->name.c_str();
    return cudaSuccess;
  });
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return api([&](Runtime& runtime) {
    KernelRecord* record = runtime.images.find_kernel(function);
    if (!kernel) return cudaErrorInvalidValue;
    if (!record) return cudaErrorInvalidDeviceFunction;
    *kernel = reinterpret_cast<cudaKernel_t>(record);
    return cudaSuccess;
  });
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* out, const void* function) {
  return cudaGetKernel(reinterpret_cast<cudaKernel_t*>(out), function);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_threads, size_t shared_bytes) {
  return api([&](Runtime& runtime) {
    if (!blocks || block_threads <= 0) return cudaErrorInvalidValue;
    return with_kernel(runtime, "cudaOccupancyMaxActiveBlocksPerMultiprocessor", function,
                       [&](KernelRecord&, const kv::simt::KernelInfo& info) {
                         *blocks =
                             resident_blocks(runtime.model(), info,
                                             static_cast<uint32_t>(block_threads), shared_bytes);
                         return cudaSuccess;
                       });
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                   const void* function,
                                                                   int block_threads,
                                                                   size_t shared_bytes, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_threads,
                                                       shared_bytes);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function,
                                                      int blocks, int) {
  return api([&](Runtime& runtime) {
    if (!bytes || blocks <= 0) return cudaErrorInvalidValue;
    return with_kernel(
        runtime, "cudaOccupancyAvailableDynamicSMemPerBlock", function,
        [&](KernelRecord&, const kv::simt::KernelInfo& info) {
          const Model& model = runtime.model();
          const int64_t share =
              model.shared_per_multiprocessor_bytes / blocks - kReservedSharedPerBlockBytes;
          const int64_t most = std::min<int64_t>(share, model.shared_per_block_optin_bytes);
          *bytes =
              static_cast<size_t>(std::max<int64_t>(0, most - int64_t{info.static_shared_bytes}));
          return cudaSuccess;
        });
  });
}
