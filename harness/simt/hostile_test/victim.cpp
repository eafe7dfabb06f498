#include "harness/simt/hostile_test/victim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "harness/simt/device.h"
#include "harness/simt/ptx/module.h"

namespace kv::simt::hostile {
namespace {

constexpr uint64_t kBudget = 20000;  // warp instructions of one launch
constexpr uint64_t kMemoryBytes = uint64_t{64} << 20;
constexpr uint64_t kBufferBytes = 4096;
constexpr size_t kKernelsMax = 4;
constexpr size_t kSentenceMax = 2000;

void expect_sentence(const Error& error) {
  EXPECT_FALSE(error.message.empty());
  EXPECT_LT(error.message.size(), kSentenceMax);
}

/// Words of pointers and small numbers: what kernels take.
std::vector<uint8_t> parameters_for(const KernelInfo& info, uint64_t buffer, Choices& choices) {
  std::vector<uint8_t> bytes(info.parameter_bytes);
  for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    const uint64_t word = choices.one_in(2) ? buffer + 256 * choices.below(8)
                                            : choices.below(64) | choices.below(64) << 32;
    std::memcpy(bytes.data() + at, &word, 8);
  }
  return bytes;
}

Result<LaunchStatus> launch(Kernel* kernel, uint64_t buffer, Choices& choices) {
  Device& device = Device::instance();
  KV_ASSIGN_OR_RETURN(const KernelInfo info, device.kernel_info(kernel));
  const std::vector<uint8_t> parameters = parameters_for(info, buffer, choices);
  const auto threads = uint32_t(1 + choices.below(std::min(info.max_threads, 96u)));
  return device.launch({.kernel = kernel,
                        .grid = {uint32_t(1 + choices.below(3)), 1, 1},
                        .block = {threads, 1, 1},
                        .dynamic_shared_bytes = uint32_t(1024 * choices.below(17)),
                        .parameters = parameters,
                        .cooperative = choices.one_in(8)});
}

}  // namespace

Fate run_text(std::string text, Choices& choices) {
  Device& device = Device::instance();
  device.reset();
  kv_simt_config config = device.config();
  config.checks = choices.one_in(8) ? 0 : KV_SIMT_CHECK_ALL;
  config.schedule_seed = choices.below(3);
  config.rounding = uint32_t(choices.below(6));
  config.model_sm = choices.one_in(2) ? 80 : 90;
  config.instruction_budget = kBudget;
  config.memory_bytes = kMemoryBytes;
  config.collect = choices.one_in(4) ? KV_SIMT_COLLECT_PROFILE | KV_SIMT_COLLECT_VALUES : 0;
  EXPECT_TRUE(device.configure(config).ok());

  const auto module = device.load_module(std::move(text));
  if (!module.ok()) {
    expect_sentence(module.error());
    return Fate::kRefused;
  }
  Fate fate = Fate::kNotRunnable;
  const auto buffer = device.allocate(kBufferBytes);
  EXPECT_TRUE(buffer.ok());
  EXPECT_TRUE(device.fill(*buffer, 1, kBufferBytes / 2).ok());
  size_t tried = 0;
  for (const ptx::Function& function : device.ptx_of(**module).functions) {
    if (!function.is_entry || !function.has_body || tried++ == kKernelsMax) continue;
    const auto kernel = device.find_kernel(*module, function.name);
    if (!kernel.ok()) continue;
    const auto status = launch(*kernel, *buffer, choices);
    if (!status.ok()) {
      expect_sentence(status.error());
    } else if (*status != LaunchStatus::kUnsupported) {
      fate = Fate::kRan;
    }
  }
  for (const kv_simt_finding& finding : device.findings()) EXPECT_NE(finding.message[0], '\0');
  device.unload_module(*module);
  return fate;
}

}  // namespace kv::simt::hostile
