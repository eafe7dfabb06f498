// Exported: allocation, pools, what a pointer is.
#include <cuda_runtime_api.h>

#include "harness/simt/cudart/capture.h"
#include "harness/simt/cudart/runtime.h"

using namespace kv::simt::cudart;

namespace {

constexpr size_t kPitchBytes = 512;  // rows of cudaMallocPitch are aligned to this

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

cudaError_t allocate(Runtime& runtime, void** pointer, size_t bytes, Owner owner) {
  if (!pointer) return cudaErrorInvalidValue;
  if (const auto error = forbid_during_capture(runtime.streams); error != cudaSuccess) return error;
  const auto address = runtime.memory.allocate(bytes, owner);
  if (!address.ok()) return cudaErrorMemoryAllocation;
  *pointer = reinterpret_cast<void*>(*address);
  return cudaSuccess;
}

/// Frees now. The Device adds a finding when `pointer` is not the start of a live allocation.
cudaError_t free_now(Runtime& runtime, const void* pointer) {
  return runtime.memory.free(address_of(pointer)).ok() ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t allocate_in_stream(Runtime& runtime, void** pointer, size_t bytes,
                               cudaStream_t stream) {
  if (!stream_of(runtime, stream, "cudaMallocAsync")) return cudaErrorInvalidResourceHandle;
  return allocate(runtime, pointer, bytes, Owner::kPool);
}

cudaError_t pitched(Runtime& runtime, void** pointer, size_t* pitch, size_t width, size_t rows) {
  if (!pitch) return cudaErrorInvalidValue;
  size_t bytes = 0;
  if (width > SIZE_MAX - kPitchBytes) return cudaErrorMemoryAllocation;
  *pitch = (width + kPitchBytes - 1) / kPitchBytes * kPitchBytes;
  if (__builtin_mul_overflow(*pitch, rows, &bytes)) return cudaErrorMemoryAllocation;
  return allocate(runtime, pointer, bytes, Owner::kDevice);
}

cudaMemoryType type_of(Owner owner) {
  switch (owner) {
    case Owner::kPinned:
    case Owner::kRegistered:
      return cudaMemoryTypeHost;
    case Owner::kManaged:
      return cudaMemoryTypeManaged;
    default:
      return cudaMemoryTypeDevice;
  }
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return api([&](Runtime& runtime) { return allocate(runtime, pointer, bytes, Owner::kDevice); });
}

cudaError_t cudaFree(void* pointer) {
  return api([&](Runtime& runtime) {
    if (!pointer) return cudaSuccess;
    const Range* range = runtime.memory.find(address_of(pointer));
    const bool waits = !range || range->owner != Owner::kPool;
    if (range && !is_device_allocation(range->owner)) {
      runtime.report_misuse("cudaFree", "the pointer is not of cudaMalloc", address_of(pointer));
      return cudaErrorInvalidValue;
    }
    if (waits) {
      if (const auto error = runtime.synchronize_device(); error != cudaSuccess) return error;
    }
    return free_now(runtime, pointer);
  });
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return api([&](Runtime& runtime) { return allocate_in_stream(runtime, pointer, bytes, stream); });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  return api([&](Runtime& runtime) {
    if (!runtime.pools.find(pool)) return cudaErrorInvalidValue;
    return allocate_in_stream(runtime, pointer, bytes, stream);
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t handle) {
  return api([&](Runtime& runtime) {
    Stream* stream = stream_of(runtime, handle, "cudaFreeAsync");
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (!pointer) return cudaSuccess;
    const Range* range = runtime.memory.find(address_of(pointer));
    if (!range || range->base != address_of(pointer)) return free_now(runtime, pointer);
    return runtime.submit(*stream, {.run =
                                        [&runtime, pointer] {
                                          free_now(runtime,
                                                   pointer);  // a second free is a finding, no more
                                          return cudaSuccess;
                                        },
                                    .may_write_host = false});
  });
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
  return api([&](Runtime& runtime) {
    return bytes == 0 ? cudaErrorInvalidValue : allocate(runtime, pointer, bytes, Owner::kManaged);
  });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return api([&](Runtime& runtime) { return pitched(runtime, pointer, pitch, width, height); });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  return api([&](Runtime& runtime) {
    size_t rows = 0;
    if (!pointer) return cudaErrorInvalidValue;
    if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) {
      return cudaErrorMemoryAllocation;
    }
    pointer->xsize = extent.width;
    pointer->ysize = extent.height;
    return pitched(runtime, &pointer->ptr, &pointer->pitch, extent.width, rows);
  });
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return api([&](Runtime& runtime) { return allocate(runtime, pointer, bytes, Owner::kPinned); });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  return api([&](Runtime& runtime) { return allocate(runtime, pointer, bytes, Owner::kPinned); });
}

cudaError_t cudaFreeHost(void* pointer) {
  return api([&](Runtime& runtime) {
    if (!pointer) return cudaSuccess;
    const Range* range = runtime.memory.find(address_of(pointer));
    if (!range || range->owner != Owner::kPinned || range->base != address_of(pointer)) {
      runtime.report_misuse("cudaFreeHost", "the pointer is not of cudaMallocHost or was freed",
                            address_of(pointer));
      return cudaErrorInvalidValue;
    }
    if (const auto error = runtime.synchronize_device(); error != cudaSuccess) return error;
    return free_now(runtime, pointer);
  });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned) {
  return api([&](Runtime& runtime) {
    if (!pointer || bytes == 0) return cudaErrorInvalidValue;
    const bool registered = runtime.memory.register_host(address_of(pointer), bytes);
    return registered ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered;
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return api([&](Runtime& runtime) {
    if (const auto error = runtime.synchronize_device(); error != cudaSuccess) return error;
    const bool known = runtime.memory.unregister_host(address_of(pointer));
    return known ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
  });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return api([&](Runtime& runtime) {
    const Range* range = runtime.memory.find(address_of(host));
    if (!device || !range) return cudaErrorInvalidValue;
    if (range->owner == Owner::kRegistered) return cudaErrorNotSupported;
    *device = host;
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  return api([&](Runtime& runtime) {
    const Range* range = runtime.memory.find(address_of(host));
    if (!flags || !range || range->owner != Owner::kPinned) return cudaErrorInvalidValue;
    *flags = cudaHostAllocMapped;
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return api([&](Runtime& runtime) {
    if (!free_bytes || !total_bytes) return cudaErrorInvalidValue;
    const uint64_t used = runtime.memory.device_bytes();
    *total_bytes = runtime.memory_bytes();
    *free_bytes = used < *total_bytes ? *total_bytes - used : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return api([&](Runtime& runtime) {
    if (!attributes) return cudaErrorInvalidValue;
    *attributes = {};
    const Range* range = runtime.memory.find(address_of(pointer));
    if (!range) {
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = cudaInvalidDeviceId;
      attributes->hostPointer = const_cast<void*>(pointer);
      return cudaSuccess;
    }
    attributes->type = type_of(range->owner);
    const bool host = attributes->type != cudaMemoryTypeDevice;
    attributes->hostPointer = host ? const_cast<void*>(pointer) : nullptr;
    const bool device = range->owner != Owner::kRegistered;
    attributes->devicePointer = device ? const_cast<void*>(pointer) : nullptr;
    return cudaSuccess;
  });
}

cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned,
                                 cudaStream_t stream) {
  return api([&](Runtime& runtime) {
    return stream_of(runtime, stream, "cudaMemPrefetchAsync") ? cudaSuccess
                                                              : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) {
  return api([](Runtime&) { return cudaSuccess; });
}
