// Errors: which, when, how long they stay.
#include <gtest/gtest.h>

#include "harness/simt/programs_test/device_fixture.h"
#include "harness/simt/programs_test/kernels.h"

namespace kv::simt::programs {
namespace {

class Errors : public DeviceTest {
 protected:
  /// The device is lost: calls fail with the error, again and again, until reset().
  void expect_lost(cudaError_t error) {
    EXPECT_EQ(cudaDeviceSynchronize(), error);
    EXPECT_EQ(cudaDeviceSynchronize(), error);
    EXPECT_EQ(cudaGetLastError(), error);
    EXPECT_EQ(cudaGetLastError(), error) << "taking it does not heal the device";
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 16), error);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), error);
    int count = 0;
    EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
    ASSERT_EQ(control().reset(), 0);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
    EXPECT_EQ(findings().size(), 0u);
  }
};

TEST_F(Errors, AccessOutOfBounds) {
  int* x = upload(std::vector<int>(4, 0));
  write_at(x, 4, 1);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the kernel has not run yet";
  expect_lost(cudaErrorIllegalAddress);
}

TEST_F(Errors, AccessOutOfBoundsIsFoundToo) {
  int* x = upload(std::vector<int>(4, 0));
  write_at(x, 1000, 1);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  const auto all = findings();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind, uint32_t{KV_SIMT_KIND_OUT_OF_BOUNDS});
  EXPECT_EQ(all[0].address, reinterpret_cast<uint64_t>(x) + 4000);
  EXPECT_EQ(all[0].allocation_bytes, 16u);
}

TEST_F(Errors, MisalignedAccess) {
  int* x = upload(std::vector<int>(4, 0));
  write_misaligned(reinterpret_cast<char*>(x));
  expect_lost(cudaErrorMisalignedAddress);
}

/// The error is what the kernel did, not what the log kept of it.
TEST_F(Errors, AFaultThatIsNotReportedAgainIsTheSameError) {
  int* x = upload(std::vector<int>(4, 0));
  write_misaligned(reinterpret_cast<char*>(x));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorMisalignedAddress);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_NE(cudaFree(x), cudaSuccess);  // the newest finding is about this
  x = upload(std::vector<int>(4, 0));
  kv_simt_config config = current();
  config.checks = 0;
  configure(config);
  write_misaligned(reinterpret_cast<char*>(x));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorMisalignedAddress);
}

TEST_F(Errors, Trap) {
  trap_now();
  expect_lost(cudaErrorLaunchFailure);
}

TEST_F(Errors, FailedAssertion) {
  assert_positive(1);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  assert_positive(-1);
  expect_lost(cudaErrorAssert);
}

TEST_F(Errors, SpentBudget) {
  int* flag = upload(std::vector<int>{0});
  spin_on(flag);
  expect_lost(cudaErrorLaunchTimeout);
}

TEST_F(Errors, WorkBehindAFaultDoesNotRun) {
  int* x = upload(std::vector<int>(4, 0));
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  bool ran = false;
  write_at(x, -100, 1, stream);
  cudaLaunchHostFunc(
      stream, [](void* flag) { *static_cast<bool*>(flag) = true; }, &ran);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_FALSE(ran);
}

TEST_F(Errors, LastErrorIsTakenOnceAndPeekedOften) {
  EXPECT_EQ(cudaSetDevice(7), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice) << "a success does not clear it";
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(Errors, NullPointersAreRefused) {
  EXPECT_EQ(cudaMalloc(nullptr, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetDeviceCount(nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetDeviceProperties(nullptr, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamCreate(nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaEventCreate(nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaPointerGetAttributes(nullptr, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemGetInfo(nullptr, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaLaunchKernelExC(nullptr, add_kernel(), nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(nullptr, nullptr, 4, cudaMemcpyDefault), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(nullptr), cudaSuccess);
}

TEST_F(Errors, NamesAndSentences) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument");
  EXPECT_STREQ(cudaGetErrorString(static_cast<cudaError_t>(998)), "unrecognized error code");
}

TEST_F(Errors, DeviceResetHealsAndReportsLeaks) {
  int* x = upload(std::vector<int>(4, 0));
  write_at(x, 4, 1);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  control().clear_findings();
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(finding_kinds(), Kinds({KV_SIMT_KIND_LEAK}));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(Errors, TheSameCallsGiveTheSameAddresses) {
  void* first = nullptr;
  void* second = nullptr;
  ASSERT_EQ(cudaMalloc(&first, 1000), cudaSuccess);
  ASSERT_EQ(control().reset(), 0);
  ASSERT_EQ(cudaMalloc(&second, 1000), cudaSuccess);
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace kv::simt::programs
