// Allocation, copies of every direction and shape, pools, what a pointer is, device properties.
#include <gtest/gtest.h>

#include <numeric>

#include "harness/simt/programs_test/device_fixture.h"
#include "harness/simt/programs_test/kernels.h"

namespace kv::simt::programs {
namespace {

using Memory = DeviceTest;

TEST_F(Memory, NothingAskedForGivesNull) {
  void* memory = &memory;
  EXPECT_EQ(cudaMalloc(&memory, 0), cudaSuccess);
  EXPECT_EQ(memory, nullptr);
}

TEST_F(Memory, TheNthAllocationCanBeMadeToFail) {
  kv_simt_config config = current();
  config.fail_allocation = 2;
  configure(config);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "running out of memory is not sticky";
}

TEST_F(Memory, MoreThanThereIsFails) {
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, SIZE_MAX), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMallocHost(&memory, SIZE_MAX / 2), cudaErrorMemoryAllocation);
  size_t pitch = 0;
  EXPECT_EQ(cudaMallocPitch(&memory, &pitch, SIZE_MAX - 5, 2), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMallocPitch(&memory, &pitch, 1024, SIZE_MAX / 1000), cudaErrorMemoryAllocation);
}

TEST_F(Memory, EveryDirection) {
  const std::vector<int> values = {1, 2, 3, 4};
  int* a = upload(values);
  int* b = upload(std::vector<int>(4, 0));
  EXPECT_EQ(cudaMemcpy(b, a, 16, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(download(b, 4), values);
  EXPECT_EQ(cudaMemcpy(b + 1, a, 8, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(download(b, 4), std::vector<int>({1, 1, 2, 4}));
  std::vector<int> host(4);
  EXPECT_EQ(cudaMemcpy(host.data(), values.data(), 16, cudaMemcpyHostToHost), cudaSuccess);
  EXPECT_EQ(host, values);
  EXPECT_EQ(cudaMemcpy(host.data(), b, 16, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(host, std::vector<int>({1, 1, 2, 4}));
}

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

/// A fill waits until somebody needs it. Fails when a mark is made before fills issued earlier.
TEST_F(Memory, AMarkComesAfterWhatWasIssuedBefore) {
  int* a = upload(std::vector<int>(4, 0));
  uint64_t offset = 0, length = 0;
  ASSERT_EQ(cudaMemset(a, 1, 16), cudaSuccess);
  ASSERT_EQ(control().set_undefined(address_of(a) + 4, 8), 0);
  ASSERT_EQ(control().first_undefined(address_of(a), 16, &offset, &length), 0);
  EXPECT_EQ(offset, 4u);
  EXPECT_EQ(length, 8u);
  EXPECT_EQ(download(a, 1)[0], 0x01010101) << "the fill itself was executed";
  ASSERT_EQ(cudaMemset(a, 1, 16), cudaSuccess);
  ASSERT_EQ(control().first_undefined(address_of(a), 16, &offset, &length), 0);
  EXPECT_EQ(length, 0u) << "a later fill defines them";
}

/// Fails when copies lose what is undefined, or the report its origin.
TEST_F(Memory, UndefinedBytesOfACopyAreFoundWithTheirOrigin) {
  int* whole = upload(std::vector<int>(4, 0));
  void *partial = nullptr, *target = nullptr;
  ASSERT_EQ(cudaMalloc(&partial, 16), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&target, 16), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(partial, whole, 12, cudaMemcpyDeviceToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(target, whole, 16, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(control().report_undefined(address_of(target), 16, "the result"), 0);
  EXPECT_EQ(findings().size(), 0u) << "the twin";
  ASSERT_EQ(cudaMemcpy(target, partial, 16, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(control().report_undefined(address_of(target), 16, "the result"), 0);
  ASSERT_EQ(findings().size(), 1u);
  EXPECT_EQ(findings()[0].kind, uint32_t{KV_SIMT_KIND_UNDEFINED});
  const std::string message = findings()[0].message;
  EXPECT_EQ(message.rfind("the result: 4 undefined bytes at ", 0), 0u) << message;
  EXPECT_NE(message.find("it was copied from "), std::string::npos) << message;
  EXPECT_NE(message.find("offset 12 of allocation 2 "), std::string::npos) << message;
}

TEST_F(Memory, WrongDirectionsAndRangesAreRefusedAndFound) {
  std::vector<int> host(8);
  int* a = upload(std::vector<int>(4, 0));
  EXPECT_EQ(cudaMemcpy(a, host.data(), 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), a, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(a, host.data(), 16, static_cast<cudaMemcpyKind>(7)),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy(a, host.data(), 17, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_NE(findings().back().message, nullptr);
  EXPECT_EQ(cudaMemcpy(host.data(), a + 1, 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(host.data(), a - 1, 4, cudaMemcpyDeviceToHost, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(a, 0, 17), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(host.data(), 0, 4), cudaErrorInvalidValue);
  for (const uint32_t kind : finding_kinds()) EXPECT_EQ(kind, uint32_t{KV_SIMT_KIND_API});
  EXPECT_GE(findings().size(), 5u);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(Memory, FreeingWhatIsNotAnAllocation) {
  int* a = upload(std::vector<int>(4, 0));
  int on_the_stack = 0;
  EXPECT_EQ(cudaFree(a + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(&on_the_stack), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(a), cudaSuccess);
  EXPECT_EQ(cudaFree(a), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(a), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeAsync(a, nullptr), cudaErrorInvalidValue);
  for (const uint32_t kind : finding_kinds()) EXPECT_EQ(kind, uint32_t{KV_SIMT_KIND_API});
  EXPECT_GE(findings().size(), 3u);
}

TEST_F(Memory, PitchedCopies) {
  void* memory = nullptr;
  size_t pitch = 0;
  ASSERT_EQ(cudaMallocPitch(&memory, &pitch, 12, 3), cudaSuccess);
  EXPECT_EQ(pitch, 512u);
  std::vector<int> rows(9);
  std::iota(rows.begin(), rows.end(), 1);
  ASSERT_EQ(cudaMemcpy2D(memory, pitch, rows.data(), 12, 12, 3, cudaMemcpyHostToDevice),
            cudaSuccess);
  ASSERT_EQ(cudaMemset2D(memory, pitch, 0, 4, 2), cudaSuccess);
  std::vector<int> back(12, -1);
  ASSERT_EQ(cudaMemcpy2D(back.data(), 16, memory, pitch, 12, 3, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(back, std::vector<int>({0, 2, 3, -1, 0, 5, 6, -1, 7, 8, 9, -1}));
  EXPECT_EQ(cudaMemcpy2D(back.data(), 8, memory, pitch, 12, 3, cudaMemcpyDeviceToHost),
            cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaMemcpy2D(back.data(), SIZE_MAX / 2, memory, pitch, 12, 4, cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy2D(back.data(), 16, memory, pitch, 12, 4, cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue)
      << "the fourth row is not there";
}

TEST_F(Memory, PoolMemoryIsFreedInStreamOrder) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocAsync(&memory, 16, stream), cudaSuccess);
  int* x = static_cast<int*>(memory);
  ASSERT_EQ(cudaMemsetAsync(x, 0, 16, stream), cudaSuccess);
  add(x, 1, 4, stream);
  ASSERT_EQ(cudaFreeAsync(x, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(findings().size(), 0u);
  EXPECT_EQ(cudaFree(x), cudaErrorInvalidValue) << "already freed";
}

TEST_F(Memory, PoolsKeepTheirAttributes) {
  cudaMemPool_t pool = nullptr;
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
  uint64_t threshold = 123456789012;
  ASSERT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold),
            cudaSuccess);
  threshold = 0;
  ASSERT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold),
            cudaSuccess);
  EXPECT_EQ(threshold, 123456789012u);
  cudaMemPoolProps properties = {};
  cudaMemPool_t own = nullptr;
  ASSERT_EQ(cudaMemPoolCreate(&own, &properties), cudaSuccess);
  void* memory = nullptr;
  EXPECT_EQ(cudaMallocFromPoolAsync(&memory, 16, own, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemPoolDestroy(own), cudaSuccess);
  EXPECT_EQ(cudaMemPoolDestroy(own), cudaErrorInvalidValue);
}

TEST_F(Memory, WhatAPointerIs) {
  cudaPointerAttributes attributes = {};
  int on_the_stack = 0;
  int* device = upload(std::vector<int>(4, 0));
  void *pinned = nullptr, *managed = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, 64, cudaHostAllocDefault), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(&managed, 64, cudaMemAttachGlobal), cudaSuccess);
  const auto type = [&](const void* pointer) {
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, pointer), cudaSuccess);
    return attributes.type;
  };
  EXPECT_EQ(type(device + 3), cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.devicePointer, device + 3);
  EXPECT_EQ(attributes.hostPointer, nullptr);
  EXPECT_EQ(type(pinned), cudaMemoryTypeHost);
  EXPECT_EQ(attributes.devicePointer, pinned);
  EXPECT_EQ(type(managed), cudaMemoryTypeManaged);
  EXPECT_EQ(type(&on_the_stack), cudaMemoryTypeUnregistered);
  EXPECT_EQ(type(device + 4), cudaMemoryTypeUnregistered);
}

TEST_F(Memory, KernelsUseManagedAndPinnedMemory) {
  void *pinned = nullptr, *managed = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 16), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(&managed, 16, cudaMemAttachGlobal), cudaSuccess);
  for (void* memory : {pinned, managed}) {
    int* x = static_cast<int*>(memory);
    for (int i = 0; i < 4; ++i) x[i] = i;
    add(x, 10, 4);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(x[3], 13);
  }
  EXPECT_EQ(findings().size(), 0u);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFree(managed), cudaSuccess);
}

TEST_F(Memory, FreeBytesFollowAllocations) {
  size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 1 << 20), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(before - after, size_t{1} << 20);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(before, after);
}

TEST_F(Memory, PropertiesAreTheModels) {
  const int expected[][4] = {{80, 8, 0, 163}, {89, 8, 9, 99}, {90, 9, 0, 227}};
  for (const auto& [sm, major, minor, kilobytes] : expected) {
    kv_simt_config config = current();
    config.model_sm = static_cast<uint32_t>(sm);
    configure(config);
    cudaDeviceProp properties = {};
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    EXPECT_EQ(properties.major, major);
    EXPECT_EQ(properties.minor, minor);
    int value = 0;
    ASSERT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0),
              cudaSuccess);
    EXPECT_EQ(value, kilobytes * 1024);
    ASSERT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
    EXPECT_EQ(value, properties.multiProcessorCount);
  }
  int value = 0;
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1), cudaErrorInvalidDevice);
}

}  // namespace
}  // namespace kv::simt::programs
