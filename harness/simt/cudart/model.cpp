#include "harness/simt/cudart/model.h"

#include <cstdio>

#include "harness/core/check.h"

namespace kv::simt::cudart {
namespace {

constexpr Model kModels[] = {
    {.sm = 80,
     .name = "kverify CPU device (sm_80)",
     .multiprocessors = 108,
     .threads_per_multiprocessor = 2048,
     .blocks_per_multiprocessor = 32,
     .shared_per_multiprocessor_bytes = 164 * 1024,
     .shared_per_block_optin_bytes = 163 * 1024,
     .l2_bytes = 40 << 20,
     .bus_bits = 5120,
     .clock_khz = 1410000,
     .memory_clock_khz = 1215000},
    {.sm = 89,
     .name = "kverify CPU device (sm_89)",
     .multiprocessors = 142,
     .threads_per_multiprocessor = 1536,
     .blocks_per_multiprocessor = 24,
     .shared_per_multiprocessor_bytes = 100 * 1024,
     .shared_per_block_optin_bytes = 99 * 1024,
     .l2_bytes = 96 << 20,
     .bus_bits = 384,
     .clock_khz = 2520000,
     .memory_clock_khz = 9001000},
    {.sm = 90,
     .name = "kverify CPU device (sm_90)",
     .multiprocessors = 132,
     .threads_per_multiprocessor = 2048,
     .blocks_per_multiprocessor = 32,
     .shared_per_multiprocessor_bytes = 228 * 1024,
     .shared_per_block_optin_bytes = 227 * 1024,
     .l2_bytes = 50 << 20,
     .bus_bits = 5120,
     .clock_khz = 1980000,
     .memory_clock_khz = 2619000},
};

struct IntField {
  cudaDeviceAttr attribute;
  int cudaDeviceProp::*field;
};

constexpr IntField kIntFields[] = {
    {cudaDevAttrMaxThreadsPerBlock, &cudaDeviceProp::maxThreadsPerBlock},
    {cudaDevAttrMaxRegistersPerBlock, &cudaDeviceProp::regsPerBlock},
    {cudaDevAttrWarpSize, &cudaDeviceProp::warpSize},
    {cudaDevAttrMultiProcessorCount, &cudaDeviceProp::multiProcessorCount},
    {cudaDevAttrIntegrated, &cudaDeviceProp::integrated},
    {cudaDevAttrCanMapHostMemory, &cudaDeviceProp::canMapHostMemory},
    {cudaDevAttrConcurrentKernels, &cudaDeviceProp::concurrentKernels},
    {cudaDevAttrEccEnabled, &cudaDeviceProp::ECCEnabled},
    {cudaDevAttrPciBusId, &cudaDeviceProp::pciBusID},
    {cudaDevAttrPciDeviceId, &cudaDeviceProp::pciDeviceID},
    {cudaDevAttrPciDomainId, &cudaDeviceProp::pciDomainID},
    {cudaDevAttrTccDriver, &cudaDeviceProp::tccDriver},
    {cudaDevAttrAsyncEngineCount, &cudaDeviceProp::asyncEngineCount},
    {cudaDevAttrUnifiedAddressing, &cudaDeviceProp::unifiedAddressing},
    {cudaDevAttrGlobalMemoryBusWidth, &cudaDeviceProp::memoryBusWidth},
    {cudaDevAttrL2CacheSize, &cudaDeviceProp::l2CacheSize},
    {cudaDevAttrMaxPersistingL2CacheSize, &cudaDeviceProp::persistingL2CacheMaxSize},
    {cudaDevAttrMaxThreadsPerMultiProcessor, &cudaDeviceProp::maxThreadsPerMultiProcessor},
    {cudaDevAttrMaxBlocksPerMultiprocessor, &cudaDeviceProp::maxBlocksPerMultiProcessor},
    {cudaDevAttrMaxAccessPolicyWindowSize, &cudaDeviceProp::accessPolicyMaxWindowSize},
    {cudaDevAttrStreamPrioritiesSupported, &cudaDeviceProp::streamPrioritiesSupported},
    {cudaDevAttrGlobalL1CacheSupported, &cudaDeviceProp::globalL1CacheSupported},
    {cudaDevAttrLocalL1CacheSupported, &cudaDeviceProp::localL1CacheSupported},
    {cudaDevAttrMaxRegistersPerMultiprocessor, &cudaDeviceProp::regsPerMultiprocessor},
    {cudaDevAttrManagedMemory, &cudaDeviceProp::managedMemory},
    {cudaDevAttrIsMultiGpuBoard, &cudaDeviceProp::isMultiGpuBoard},
    {cudaDevAttrPageableMemoryAccess, &cudaDeviceProp::pageableMemoryAccess},
    {cudaDevAttrConcurrentManagedAccess, &cudaDeviceProp::concurrentManagedAccess},
    {cudaDevAttrComputePreemptionSupported, &cudaDeviceProp::computePreemptionSupported},
    {cudaDevAttrCooperativeLaunch, &cudaDeviceProp::cooperativeLaunch},
    {cudaDevAttrClusterLaunch, &cudaDeviceProp::clusterLaunch},
    {cudaDevAttrMemoryPoolsSupported, &cudaDeviceProp::memoryPoolsSupported},
    {cudaDevAttrHostRegisterSupported, &cudaDeviceProp::hostRegisterSupported},
    {cudaDevAttrComputeCapabilityMajor, &cudaDeviceProp::major},
    {cudaDevAttrComputeCapabilityMinor, &cudaDeviceProp::minor},
};

struct SizeField {
  cudaDeviceAttr attribute;
  size_t cudaDeviceProp::*field;
};

constexpr SizeField kSizeFields[] = {
    {cudaDevAttrMaxSharedMemoryPerBlock, &cudaDeviceProp::sharedMemPerBlock},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, &cudaDeviceProp::sharedMemPerBlockOptin},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, &cudaDeviceProp::sharedMemPerMultiprocessor},
    {cudaDevAttrReservedSharedMemoryPerBlock, &cudaDeviceProp::reservedSharedMemPerBlock},
    {cudaDevAttrTotalConstantMemory, &cudaDeviceProp::totalConstMem},
    {cudaDevAttrMaxPitch, &cudaDeviceProp::memPitch},
    {cudaDevAttrTextureAlignment, &cudaDeviceProp::textureAlignment},
};

}  // namespace

const Model& model_of(uint32_t sm) {
  for (const Model& model : kModels) {
    if (model.sm == sm) return model;
  }
  check_failed(__FILE__, __LINE__, "a known model", "no model sm_" + std::to_string(sm));
}

cudaDeviceProp properties_of(const Model& model, uint64_t memory_bytes) {
  cudaDeviceProp p = {};
  std::snprintf(p.name, sizeof p.name, "%s", model.name);
  p.totalGlobalMem = memory_bytes;
  p.sharedMemPerBlock = kSharedPerBlockBytes;
  p.sharedMemPerBlockOptin = static_cast<size_t>(model.shared_per_block_optin_bytes);
  p.sharedMemPerMultiprocessor = static_cast<size_t>(model.shared_per_multiprocessor_bytes);
  p.reservedSharedMemPerBlock = kReservedSharedPerBlockBytes;
  p.regsPerBlock = p.regsPerMultiprocessor = kRegistersPerMultiprocessor;
  p.warpSize = kWarpLanes;
  p.memPitch = 0x7fffffff;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.totalConstMem = 65536;
  p.major = static_cast<int>(model.sm / 10);
  p.minor = static_cast<int>(model.sm % 10);
  p.textureAlignment = 512;
  p.texturePitchAlignment = 32;
  p.multiProcessorCount = model.multiprocessors;
  p.canMapHostMemory = 1;
  p.concurrentKernels = 1;
  p.asyncEngineCount = 3;
  p.unifiedAddressing = 1;
  p.memoryBusWidth = model.bus_bits;
  p.l2CacheSize = model.l2_bytes;
  p.maxThreadsPerMultiProcessor = model.threads_per_multiprocessor;
  p.maxBlocksPerMultiProcessor = model.blocks_per_multiprocessor;
  p.streamPrioritiesSupported = 1;
  p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.managedMemory = 1;
  p.computePreemptionSupported = 1;
  p.cooperativeLaunch = 1;
  p.hostRegisterSupported = 1;
  p.memoryPoolsSupported = 1;
  return p;
}

std::optional<int> attribute_of(const Model& model, uint64_t memory_bytes,
                                cudaDeviceAttr attribute) {
  const cudaDeviceProp p = properties_of(model, memory_bytes);
  for (const IntField& entry : kIntFields) {
    if (entry.attribute == attribute) return p.*entry.field;
  }
  for (const SizeField& entry : kSizeFields) {
    if (entry.attribute == attribute) return static_cast<int>(p.*entry.field);
  }
  switch (attribute) {
    case cudaDevAttrMaxBlockDimX:
      return p.maxThreadsDim[0];
    case cudaDevAttrMaxBlockDimY:
      return p.maxThreadsDim[1];
    case cudaDevAttrMaxBlockDimZ:
      return p.maxThreadsDim[2];
    case cudaDevAttrMaxGridDimX:
      return p.maxGridSize[0];
    case cudaDevAttrMaxGridDimY:
      return p.maxGridSize[1];
    case cudaDevAttrMaxGridDimZ:
      return p.maxGridSize[2];
    case cudaDevAttrClockRate:
      return model.clock_khz;
    case cudaDevAttrMemoryClockRate:
      return model.memory_clock_khz;
    case cudaDevAttrGpuOverlap:
      return 1;
    case cudaDevAttrKernelExecTimeout:
      return 0;
    case cudaDevAttrComputeMode:
      return cudaComputeModeDefault;
    case cudaDevAttrHostNativeAtomicSupported:
      return 0;
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
      return 0;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio:
      return 2;
    default:
      return std::nullopt;
  }
}

}  // namespace kv::simt::cudart
