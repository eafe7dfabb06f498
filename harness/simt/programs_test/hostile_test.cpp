// What a broken program may hand to the registration functions: errors at use, no crash.
#include <gtest/gtest.h>

#include <cstring>

#include "harness/simt/programs_test/device_fixture.h"

// As nvcc's generated code declares them (crt/host_runtime.h).
// NOLINTBEGIN(bugprone-reserved-identifier): the toolkit chose these names
extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host_function, char* device_function,
                            const char* device_name, int thread_limit, uint3*, uint3*, dim3*, dim3*,
                            int*);
void __cudaRegisterVar(void** handle, char* host_variable, char* device_address,
                       const char* device_name, int, size_t bytes, int, int);
char __cudaInitModule(void** handle);
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*);
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace kv::simt::programs {
namespace {

struct Wrapper {
  uint32_t magic = 0x466243b1, version = 1;
  const void* data = nullptr;
  void* more = nullptr;
};

constexpr char kText[] =
    ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }";

struct Container {
  uint32_t magic = 0xba55ed50;
  uint16_t version = 1, header_bytes = 16;
  uint64_t bytes = 0;
  // The entry.
  uint16_t kind = 1, entry_version = 0x101;
  uint32_t entry_header_bytes = 0x50;
  uint64_t payload_bytes = sizeof text;
  uint32_t compressed_bytes = 0, options = 0;
  uint16_t minor = 0, major = 9;
  uint32_t sm = 80, name_offset = 0, name_bytes = 0;
  uint64_t flags = 0x11, zero = 0, raw_bytes = 0;
  uint8_t padding[0x10] = {};
  char text[512] = {};

  Container() {
    std::memcpy(text, kText, sizeof kText);
    bytes = entry_header_bytes + payload_bytes;
  }
};

class Hostile : public DeviceTest {
 protected:
  /// Registers, launches the kernel "k", unregisters: the error of the launch.
  cudaError_t launch_from(void* wrapper, const char* name = "k") {
    testing::internal::CaptureStderr();
    void** handle = __cudaRegisterFatBinary(wrapper);
    __cudaRegisterFunction(handle, &host_function, nullptr, name, -1, nullptr, nullptr, nullptr,
                           nullptr, nullptr);
    __cudaRegisterVar(handle, &host_variable, nullptr, "v", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    __cudaInitModule(handle);
    cudaKernel_t kernel = nullptr;
    const cudaError_t known = __cudaGetKernel(&kernel, &host_function);
    const cudaError_t launched =
        known == cudaSuccess ? __cudaLaunchKernel(kernel, dim3(1), dim3(1), nullptr, 0, nullptr)
                             : known;
    int value = 0;
    EXPECT_NE(cudaMemcpyFromSymbol(&value, &host_variable, 4, 0, cudaMemcpyDeviceToHost),
              cudaSuccess);
    const cudaError_t finished = cudaDeviceSynchronize();
    __cudaUnregisterFatBinary(handle);
    EXPECT_EQ(cudaLaunchKernel(&host_function, dim3(1), dim3(1), nullptr, 0, nullptr),
              cudaErrorInvalidDeviceFunction)
        << "gone with its fat binary";
    testing::internal::GetCapturedStderr();
    return launched != cudaSuccess ? launched : finished;
  }
  static inline char host_function = 0, host_variable = 0;
};

TEST_F(Hostile, TheFixtureItselfIsAGoodFatBinary) {
  Container container;
  Wrapper wrapper{.data = &container};
  EXPECT_EQ(launch_from(&wrapper), cudaSuccess);
}

TEST_F(Hostile, NullsAndWrongMagic) {
  Container container;
  Wrapper bad_magic{.magic = 0x12345678, .data = &container};
  Wrapper no_data{};
  Wrapper relocatable{.version = 2, .data = &container};
  Wrapper future{.version = 7, .data = &container};
  EXPECT_EQ(launch_from(nullptr), cudaErrorInvalidKernelImage);
  EXPECT_EQ(launch_from(&bad_magic), cudaErrorInvalidKernelImage);
  EXPECT_EQ(launch_from(&no_data), cudaErrorInvalidKernelImage);
  EXPECT_EQ(launch_from(&relocatable), cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(launch_from(&future), cudaErrorInvalidKernelImage);
  container.magic = 0;
  Wrapper wrapper{.data = &container};
  EXPECT_EQ(launch_from(&wrapper), cudaErrorInvalidKernelImage);
  EXPECT_GE(findings().size(), 1u);
}

TEST_F(Hostile, LyingSizes) {
  const auto with = [&](auto&& spoil) {
    Container container;
    spoil(container);
    Wrapper wrapper{.data = &container};
    return launch_from(&wrapper);
  };
  EXPECT_EQ(with([](Container& c) { c.bytes = 10; }), cudaErrorInvalidKernelImage);
  EXPECT_EQ(with([](Container& c) { c.bytes = uint64_t{1} << 60; }), cudaErrorInvalidKernelImage);
  EXPECT_EQ(with([](Container& c) { c.payload_bytes = uint64_t{1} << 40; }),
            cudaErrorInvalidKernelImage);
  EXPECT_EQ(with([](Container& c) { c.entry_header_bytes = 4; }), cudaErrorInvalidKernelImage);
  EXPECT_EQ(with([](Container& c) {
              c.flags |= 0x8000;
              c.compressed_bytes = 100;
              c.raw_bytes = uint64_t{1} << 50;
            }),
            cudaErrorInvalidKernelImage);
  EXPECT_EQ(with([](Container& c) { c.bytes = 0; }), cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(with([](Container& c) { c.kind = 2; }), cudaErrorNoKernelImageForDevice);
}

TEST_F(Hostile, BadPtxAndMissingKernel) {
  Container container;
  std::memset(container.text, '{', 60);
  Wrapper wrapper{.data = &container};
  EXPECT_EQ(launch_from(&wrapper), cudaErrorInvalidPtx);
  Container good;
  wrapper.data = &good;
  EXPECT_EQ(launch_from(&wrapper, "no_such_kernel"), cudaErrorInvalidDeviceFunction);
}

TEST_F(Hostile, HandlesThatWereNeverGiven) {
  void** forged = reinterpret_cast<void**>(0x1234);
  __cudaRegisterFunction(forged, &host_function, nullptr, "k", -1, nullptr, nullptr, nullptr,
                         nullptr, nullptr);
  __cudaRegisterFunction(nullptr, nullptr, nullptr, nullptr, -1, nullptr, nullptr, nullptr, nullptr,
                         nullptr);
  __cudaRegisterVar(forged, &host_variable, nullptr, nullptr, 0, 4, 0, 0);
  EXPECT_EQ(__cudaInitModule(forged), 1);
  __cudaUnregisterFatBinary(forged);
  __cudaUnregisterFatBinary(nullptr);
  cudaKernel_t kernel = nullptr;
  EXPECT_EQ(__cudaGetKernel(&kernel, &host_function), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(__cudaLaunchKernel(reinterpret_cast<cudaKernel_t>(0x1234), dim3(1), dim3(1), nullptr, 0,
                               nullptr),
            cudaErrorInvalidDeviceFunction);
  dim3 grid, block;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream),
            cudaErrorMissingConfiguration);
}

TEST_F(Hostile, ControlTable) {
  EXPECT_EQ(kv_simt_control(0), nullptr);
  EXPECT_EQ(kv_simt_control(2), nullptr);
  EXPECT_EQ(control().get_config(nullptr), -1);
  EXPECT_NE(std::string(control().last_error()), "");
  EXPECT_EQ(control().configure(nullptr), -1);
  kv_simt_config config = {};
  EXPECT_EQ(control().get_config(&config), -1) << "struct_bytes says that there is no room";
  config.struct_bytes = sizeof config.struct_bytes + sizeof config.checks;
  EXPECT_EQ(control().get_config(&config), 0) << "an older caller's shorter struct";
  EXPECT_EQ(config.schedule_seed, 0u);
  config = current();
  config.model_sm = 75;
  EXPECT_EQ(control().configure(&config), -1);
  kv_simt_finding finding = {};
  finding.struct_bytes = sizeof finding;
  EXPECT_EQ(control().finding(0, &finding), -1);
  EXPECT_EQ(control().set_access(0x1234, 16, KV_SIMT_ACCESS_NONE), -1);
  EXPECT_EQ(control().set_undefined(0x1234, 16), -1);
  uint64_t offset = 0, length = 0;
  EXPECT_EQ(control().first_undefined(0x1234, 16, &offset, &length), -1);
  EXPECT_EQ(control().first_undefined(0x1234, 16, nullptr, &length), -1);
  EXPECT_EQ(control().report_undefined(0x1234, 16, "what"), -1);
  EXPECT_EQ(control().report_undefined(0x1234, 16, nullptr), -1);
}

}  // namespace
}  // namespace kv::simt::programs
