// What is different in libcudart.so.12: a program built with CUDA 12 finds these in place of the
// functions of the same name. Prototypes and the layout after cuda_runtime_api.h of CUDA 12.4; the
// rest of what both versions have is the same, to the bit.
#include <cuda_runtime_api.h>

#include <cstdio>

#include "harness/simt/cudart/runtime.h"

using namespace kv::simt::cudart;

namespace {

/// cudaDeviceProp of CUDA 12: 13 dropped fields in the middle.
struct Properties12 {
  char name[256];
  cudaUUID_t uuid;
  char luid[8];
  unsigned luidDeviceNodeMask;
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
  size_t totalConstMem;
  int major, minor;
  size_t textureAlignment, texturePitchAlignment;
  int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory,
      computeMode, texturesAndSurfaces[40];
  size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver,
      asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize,
      persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported,
      globalL1CacheSupported, localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID,
      hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, pageableMemoryAccess,
      concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem,
      cooperativeLaunch, cooperativeMultiDeviceLaunch;
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost,
      maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported,
      timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
  unsigned gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned memoryPoolSupportedHandleTypes;
  int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers,
      reserved[63];
};
static_assert(sizeof(Properties12) == 1032);

Properties12 as_cuda12(const Model& model, uint64_t memory_bytes) {
  const cudaDeviceProp p = properties_of(model, memory_bytes);
  Properties12 q = {};
  std::snprintf(q.name, sizeof q.name, "%s", p.name);
  q.totalGlobalMem = p.totalGlobalMem;
  q.sharedMemPerBlock = p.sharedMemPerBlock;
  q.regsPerBlock = p.regsPerBlock;
  q.warpSize = p.warpSize;
  q.memPitch = p.memPitch;
  q.maxThreadsPerBlock = p.maxThreadsPerBlock;
  for (int i = 0; i < 3; ++i) {
    q.maxThreadsDim[i] = p.maxThreadsDim[i];
    q.maxGridSize[i] = p.maxGridSize[i];
  }
  q.clockRate = model.clock_khz;
  q.totalConstMem = p.totalConstMem;
  q.major = p.major;
  q.minor = p.minor;
  q.textureAlignment = p.textureAlignment;
  q.texturePitchAlignment = p.texturePitchAlignment;
  q.deviceOverlap = 1;
  q.multiProcessorCount = p.multiProcessorCount;
  q.canMapHostMemory = p.canMapHostMemory;
  q.concurrentKernels = p.concurrentKernels;
  q.asyncEngineCount = p.asyncEngineCount;
  q.unifiedAddressing = p.unifiedAddressing;
  q.memoryClockRate = model.memory_clock_khz;
  q.memoryBusWidth = p.memoryBusWidth;
  q.l2CacheSize = p.l2CacheSize;
  q.maxThreadsPerMultiProcessor = p.maxThreadsPerMultiProcessor;
  q.streamPrioritiesSupported = p.streamPrioritiesSupported;
  q.globalL1CacheSupported = p.globalL1CacheSupported;
  q.localL1CacheSupported = p.localL1CacheSupported;
  q.sharedMemPerMultiprocessor = p.sharedMemPerMultiprocessor;
  q.regsPerMultiprocessor = p.regsPerMultiprocessor;
  q.managedMemory = p.managedMemory;
  q.singleToDoublePrecisionPerfRatio = 2;
  q.computePreemptionSupported = p.computePreemptionSupported;
  q.cooperativeLaunch = p.cooperativeLaunch;
  q.sharedMemPerBlockOptin = p.sharedMemPerBlockOptin;
  q.maxBlocksPerMultiProcessor = p.maxBlocksPerMultiProcessor;
  q.reservedSharedMemPerBlock = p.reservedSharedMemPerBlock;
  q.hostRegisterSupported = p.hostRegisterSupported;
  q.memoryPoolsSupported = p.memoryPoolsSupported;
  q.clusterLaunch = p.clusterLaunch;
  return q;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceProperties_v2(void* properties, int device) {
  return api_always([&](Runtime& runtime) {
    if (!properties) return cudaErrorInvalidValue;
    if (device != 0) return cudaErrorInvalidDevice;
    *static_cast<Properties12*>(properties) = as_cuda12(runtime.model(), runtime.memory_bytes());
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const cudaGraphNode_t** dependencies, size_t* count) {
  return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, nullptr, count);
}

// Names that both versions have, with other parameters: cuda12.map hides those of 13.
cudaError_t kv_cuda12_prefetch(const void* address, size_t bytes, int, cudaStream_t stream) {
  return cudaMemPrefetchAsync(address, bytes, {}, 0, stream);
}
__asm__(".symver kv_cuda12_prefetch, cudaMemPrefetchAsync@@libcudart.so.12");

cudaError_t kv_cuda12_advise(const void* address, size_t bytes, cudaMemoryAdvise advice, int) {
  return cudaMemAdvise(address, bytes, advice, {});
}
__asm__(".symver kv_cuda12_advise, cudaMemAdvise@@libcudart.so.12");

cudaError_t kv_cuda12_runtime_version(int* version) {
  return api_always([&](Runtime&) {
    if (!version) return cudaErrorInvalidValue;
    *version = 12040;
    return cudaSuccess;
  });
}
__asm__(".symver kv_cuda12_runtime_version, cudaRuntimeGetVersion@@libcudart.so.12");

}  // extern "C"
