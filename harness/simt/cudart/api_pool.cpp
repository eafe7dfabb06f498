// Exported: memory pools. A pool keeps its attributes; memory freed to it is freed at once, so that
// a use after free is seen.
#include <cuda_runtime_api.h>

#include <cstring>

#include "harness/simt/cudart/runtime.h"

using namespace kv::simt::cudart;

namespace {

/// Reuse switches are ints, thresholds and sizes are 64 bits wide.
size_t width_of(cudaMemPoolAttr attribute) {
  return attribute <= cudaMemPoolReuseAllowInternalDependencies ? sizeof(int) : sizeof(uint64_t);
}

bool is_known(cudaMemPoolAttr attribute) {
  return attribute >= cudaMemPoolReuseFollowEventDependencies &&
         attribute <= cudaMemPoolAttrUsedMemHigh;
}

}  // namespace

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return api([&](Runtime& runtime) {
    if (!pool) return cudaErrorInvalidValue;
    if (device != 0) return cudaErrorInvalidDevice;
    *pool = runtime.default_pool;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return api([&](Runtime& runtime) {
    if (device != 0) return cudaErrorInvalidDevice;
    return runtime.pools.find(pool) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return api([&](Runtime& runtime) {
    if (!pool || !properties) return cudaErrorInvalidValue;
    *pool = runtime.pools.insert({});
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return api([&](Runtime& runtime) {
    if (pool == runtime.default_pool || !runtime.pools.find(pool)) return cudaErrorInvalidValue;
    runtime.pools.erase(pool);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  return api([&](Runtime& runtime) {
    return runtime.pools.find(pool) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return api([&](Runtime& runtime) {
    Pool* pool = runtime.pools.find(handle);
    if (!pool || !value || !is_known(attribute)) return cudaErrorInvalidValue;
    uint64_t& kept = pool->attributes[attribute] = 0;
    std::memcpy(&kept, value, width_of(attribute));
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return api([&](Runtime& runtime) {
    Pool* pool = runtime.pools.find(handle);
    if (!pool || !value || !is_known(attribute)) return cudaErrorInvalidValue;
    const auto found = pool->attributes.find(attribute);
    const uint64_t kept = found == pool->attributes.end() ? 0 : found->second;
    std::memcpy(value, &kept, width_of(attribute));
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc*, size_t) {
  return api([&](Runtime& runtime) {
    return runtime.pools.find(pool) ? cudaSuccess : cudaErrorInvalidValue;
  });
}
