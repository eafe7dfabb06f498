// Fat binaries as nvcc makes them: compressed in three ways, for several architectures, or without
// any PTX at all.
#include <gtest/gtest.h>

#include "harness/simt/programs_test/device_fixture.h"

namespace kv::simt::programs {

void arch_plain(int* out);
void arch_lz4(int* out);
void arch_zstd(int* out);
void arch_80_89_90(int* out);
void arch_only_90(int* out);
void arch_only_cubin(int* out);

namespace {

class Module : public DeviceTest {
 protected:
  static int arch_of(void (*launch)(int*)) {
    int* out = upload(std::vector<int>{-1});
    launch(out);
    return download(out, 1)[0];
  }
  static void simulate(uint32_t sm) {
    kv_simt_config config = current();
    config.model_sm = sm;
    configure(config);
  }
};

TEST_F(Module, EveryCompressionIsRead) {
  EXPECT_EQ(arch_of(arch_plain), 800);
  EXPECT_EQ(arch_of(arch_lz4), 800);
  EXPECT_EQ(arch_of(arch_zstd), 800);
}

TEST_F(Module, TheHighestArchitectureNotAboveTheModelRuns) {
  const uint32_t models[] = {90, 80, 89, 80};
  for (const uint32_t sm : models) {
    simulate(sm);
    EXPECT_EQ(arch_of(arch_80_89_90), static_cast<int>(sm) * 10);
  }
}

TEST_F(Module, CodeForANewerDeviceIsRefused) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(arch_of(arch_only_90), -1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("sm_80"), std::string::npos) << said;
  EXPECT_EQ(finding_kinds(), Kinds({KV_SIMT_KIND_UNSUPPORTED}));
  simulate(90);
  EXPECT_EQ(arch_of(arch_only_90), 900);
}

TEST_F(Module, MachineCodeAloneIsRefusedWithOneSentence) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(arch_of(arch_only_cubin), -1);
    EXPECT_EQ(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("no PTX"), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), said.size() - 1) << "said once: " << said;
  EXPECT_EQ(finding_kinds(), Kinds({KV_SIMT_KIND_UNSUPPORTED}));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "other modules go on working";
}

}  // namespace
}  // namespace kv::simt::programs
