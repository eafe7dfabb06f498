// Launches: parameters, constants, shared memory, the ways into a kernel, what is refused.
#include <gtest/gtest.h>

#include <numeric>

#include "harness/simt/programs_test/device_fixture.h"
#include "harness/simt/programs_test/kernels.h"

namespace kv::simt::programs {
namespace {

using Launch = DeviceTest;

std::vector<int> counting(int n) {
  std::vector<int> values(n);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST_F(Launch, VectorAdd) {
  std::vector<float> a(100), b(100);
  std::iota(a.begin(), a.end(), 0.0f);
  std::iota(b.begin(), b.end(), 1000.0f);
  float* sum = upload(std::vector<float>(100));
  vector_add(upload(a), upload(b), sum, 100);
  const auto got = download(sum, 100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(got[i], 1000.0f + 2.0f * i);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(findings().size(), 0u);
}

TEST_F(Launch, ConstantsAndDeviceVariables) {
  const float host_factors[4] = {1, 2, 3, 4};
  ASSERT_EQ(cudaMemcpyToSymbol(factors_symbol(), host_factors, sizeof host_factors, 0,
                               cudaMemcpyHostToDevice),
            cudaSuccess);
  int calls = 0;
  ASSERT_EQ(cudaMemcpyToSymbol(calls_symbol(), &calls, sizeof calls, 0, cudaMemcpyHostToDevice),
            cudaSuccess);
  float* x = upload(std::vector<float>(8, 10.0f));
  scale_by_constants(x, 8);
  scale_by_constants(x, 8);
  EXPECT_EQ(download(x, 8), std::vector<float>({10, 40, 90, 160, 10, 40, 90, 160}));
  ASSERT_EQ(cudaMemcpyFromSymbol(&calls, calls_symbol(), sizeof calls, 0, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(calls, 2);
  size_t bytes = 0;
  EXPECT_EQ(cudaGetSymbolSize(&bytes, factors_symbol()), cudaSuccess);
  EXPECT_EQ(bytes, 16u);
  EXPECT_EQ(findings().size(), 0u);
}

TEST_F(Launch, AddressOfASymbolIsAnAddressLikeAnyOther) {
  void* address = nullptr;
  ASSERT_EQ(cudaGetSymbolAddress(&address, calls_symbol()), cudaSuccess);
  const int value = 77;
  ASSERT_EQ(cudaMemcpy(address, &value, sizeof value, cudaMemcpyHostToDevice), cudaSuccess);
  int back = 0;
  ASSERT_EQ(cudaMemcpyFromSymbol(&back, calls_symbol(), sizeof back, 0, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(back, 77);
}

TEST_F(Launch, UnknownSymbolIsRefused) {
  const int value = 1;
  EXPECT_EQ(cudaMemcpyToSymbol(unregistered_symbol(), &value, 4, 0, cudaMemcpyHostToDevice),
            cudaErrorInvalidSymbol);
  EXPECT_EQ(cudaMemcpyToSymbol(calls_symbol(), &value, 4, 1, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(finding_kinds(), Kinds({KV_SIMT_KIND_API, KV_SIMT_KIND_API}));
}

TEST_F(Launch, ParametersKeepTheirAlignment) {
  long long* out = upload(std::vector<long long>(4));
  unpack({.small = -5, .wide = 1LL << 40, .half = -3}, -77, out);
  EXPECT_EQ(download(out, 4), std::vector<long long>({-5, 1LL << 40, -3, -77}));
}

TEST_F(Launch, DynamicSharedMemory) {
  int* x = upload(counting(200));
  reverse(x, 200, 200 * sizeof(int));
  const auto got = download(x, 200);
  EXPECT_EQ(got.front(), 199);
  EXPECT_EQ(got.back(), 0);
  EXPECT_EQ(findings().size(), 0u);
}

TEST_F(Launch, SharedMemoryAbove48KilobytesMustBeAskedFor) {
  constexpr int kInts = 64 * 1024 / 4;
  int* x = upload(counting(kInts));
  cudaFuncSetAttribute(reverse_kernel(), cudaFuncAttributeMaxDynamicSharedMemorySize, 48 * 1024);
  reverse(x, kInts, kInts * sizeof(int));
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(finding_kinds(), Kinds({KV_SIMT_KIND_API}));
  control().clear_findings();

  ASSERT_EQ(cudaFuncSetAttribute(reverse_kernel(), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 kInts * sizeof(int)),
            cudaSuccess);
  reverse(x, kInts, kInts * sizeof(int));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(download(x, kInts).front(), kInts - 1);
  EXPECT_EQ(findings().size(), 0u);
}

TEST_F(Launch, SharedMemoryLimitIsTheModels) {
  cudaFuncAttributes attributes = {};
  ASSERT_EQ(cudaFuncGetAttributes(&attributes, reverse_kernel()), cudaSuccess);
  EXPECT_EQ(attributes.sharedSizeBytes, 16u);
  const auto set = [](int bytes) {
    return cudaFuncSetAttribute(reverse_kernel(), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                bytes);
  };
  EXPECT_EQ(set(163 * 1024 - 16), cudaSuccess);
  EXPECT_EQ(set(163 * 1024 - 15), cudaErrorInvalidValue);
  EXPECT_EQ(set(-1), cudaErrorInvalidValue);
  kv_simt_config config = current();
  config.model_sm = 89;
  configure(config);
  EXPECT_EQ(set(99 * 1024 - 15), cudaErrorInvalidValue);
  EXPECT_EQ(set(48 * 1024), cudaSuccess);
}

TEST_F(Launch, ExplicitLaunchesTakeTheSameKernel) {
  int* x = upload(counting(32));
  int amount = 5, n = 32;
  void* arguments[] = {&x, &amount, &n};
  ASSERT_EQ(cudaLaunchKernel(add_kernel(), dim3(1), dim3(32), arguments, 0, nullptr), cudaSuccess);
  amount = 100;  // arguments are taken at the call
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  ASSERT_EQ(cudaLaunchKernelExC(&config, add_kernel(), arguments), cudaSuccess);
  amount = 0;
  cudaKernel_t handle = nullptr;
  ASSERT_EQ(cudaGetKernel(&handle, add_kernel()), cudaSuccess);
  ASSERT_EQ(cudaLaunchKernel(handle, dim3(1), dim3(32), arguments, 0, nullptr), cudaSuccess);
  ASSERT_EQ(cudaLaunchCooperativeKernel(add_kernel(), dim3(1), dim3(32), arguments, 0, nullptr),
            cudaSuccess);
  EXPECT_EQ(download(x, 32)[31], 31 + 5 + 100);
}

TEST_F(Launch, LaunchAttributes) {
  int* x = upload(counting(32));
  int amount = 1, n = 32;
  void* arguments[] = {&x, &amount, &n};
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {1, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  config.attrs = attributes;
  config.numAttrs = 2;
  EXPECT_EQ(cudaLaunchKernelExC(&config, add_kernel(), arguments), cudaSuccess);
  attributes[1].val.clusterDim = {2, 1, 1};
  EXPECT_EQ(cudaLaunchKernelExC(&config, add_kernel(), arguments), cudaErrorNotSupported);
  EXPECT_EQ(download(x, 32)[0], 1);
}

struct BadShape {
  dim3 grid, block;
};

TEST_F(Launch, BadShapesAreRefusedAtTheCall) {
  const BadShape shapes[] = {
      {dim3(0), dim3(32)},           {dim3(1), dim3(0)},           {dim3(1, 65536), dim3(32)},
      {dim3(1, 1, 65536), dim3(32)}, {dim3(0x80000000), dim3(32)}, {dim3(1), dim3(1025)},
      {dim3(1), dim3(1, 1, 65)},     {dim3(1), dim3(32, 33)},
  };
  for (const BadShape& shape : shapes) {
    launch_shape(shape.grid, shape.block);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration)
        << shape.grid.x << " " << shape.grid.y << " " << shape.block.x;
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the error is taken by the first call";
  }
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "nothing of this is sticky";
  EXPECT_GE(findings().size(), 1u);
}

TEST_F(Launch, LaunchBoundsAreKept) {
  launch_bounded(64);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  launch_bounded(65);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST_F(Launch, UnknownKernelAndMissingArgumentAreRefused) {
  void* no_arguments[3] = {};
  EXPECT_EQ(cudaLaunchKernel(unregistered_symbol(), dim3(1), dim3(1), no_arguments, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaLaunchKernel(nullptr, dim3(1), dim3(1), no_arguments, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaLaunchKernel(add_kernel(), dim3(1), dim3(1), no_arguments, 0, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaLaunchKernel(add_kernel(), dim3(1), dim3(1), nullptr, 0, nullptr),
            cudaErrorInvalidValue);
}

TEST_F(Launch, OccupancyFollowsSharedMemoryAndThreads) {
  int blocks = 0;
  ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add_kernel(), 1024, 0),
            cudaSuccess);
  EXPECT_EQ(blocks, 2);  // 2048 threads
  ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse_kernel(), 32, 80 * 1024),
            cudaSuccess);
  EXPECT_EQ(blocks, 2);  // 164 KiB, 81 KiB and 16 bytes each
  ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add_kernel(), 32, 0),
            cudaSuccess);
  EXPECT_EQ(blocks, 32);
}

TEST_F(Launch, CooperativeGridMustBeResident) {
  int* x = upload(counting(32));
  int amount = 1, n = 32;
  void* arguments[] = {&x, &amount, &n};
  const dim3 too_many(2 * 108 + 1);  // two blocks of 1024 threads on each of 108 multiprocessors
  EXPECT_EQ(cudaLaunchCooperativeKernel(add_kernel(), too_many, dim3(1024), arguments, 0, nullptr),
            cudaErrorCooperativeLaunchTooLarge);
}

TEST_F(Launch, ManagedVariablesAreSharedWithTheHost) {
  const int before = managed_value();
  increment_managed();
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(managed_value(), before + 1);
}

TEST_F(Launch, DevicePrintfGoesToStandardOutput) {
  testing::internal::CaptureStdout();
  print_numbers(42);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "number 42 of the device\n");
}

}  // namespace
}  // namespace kv::simt::programs
