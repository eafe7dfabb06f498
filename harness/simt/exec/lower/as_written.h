// Purpose: runs a kernel as decoded and as written, instruction by instruction, for tests.
// Contract: what is asked for by collecting all values is the program as written; the two must not
// differ in anything that anybody sees.
// Example: class MyTest : public AsWritten {};  ... const Seen seen = same("mov.u32 %r1, 5;", 0);
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "harness/simt/device.h"
#include "harness/simt/exec/lower/allocate.h"
#include "harness/simt/ptx/parse.h"

namespace kv::simt {

inline constexpr uint32_t kBlocks = 3, kThreads = 64;

/// Three blocks of 64 threads; %rd2 points to the thread's own word of `out`, zeroed before, which
/// gets %r1 at the end.
inline std::string kernel_of(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 out, .param .u32 count) {\n"
         ".reg .b32 %r<16>; .reg .b32 %n; .reg .b32 %t; .reg .b32 %b; .reg .b64 %rd<8>;\n"
         ".reg .pred %p<8>;\n"
         "ld.param.u64 %rd1, [out];\nld.param.u32 %n, [count];\nmov.u32 %t, %tid.x;\n"
         "mov.u32 %b, %ctaid.x;\nmad.lo.s32 %r15, %b, 64, %t;\n"
         "mad.wide.u32 %rd2, %r15, 4, %rd1;\n" +
         body + "\nst.global.u32 [%rd2], %r1;\nret;\n}\n";
}

struct Seen {
  std::vector<uint32_t> out;
  std::vector<std::string> findings;
  uint64_t warp_instructions = 0, thread_instructions = 0, divergent = 0;
  LaunchStatus status = LaunchStatus::kCompleted;
  bool operator==(const Seen&) const = default;
};

class AsWritten : public ::testing::Test {
 protected:
  Seen see(const std::string& body, uint32_t n, uint32_t collect) {
    device_.reset();
    kv_simt_config config = device_.config();
    config.checks = KV_SIMT_CHECK_ALL & ~uint32_t{KV_SIMT_CHECK_LEAK};
    config.collect = collect;
    EXPECT_TRUE(device_.configure(config).ok());
    const auto module = device_.load_module(kernel_of(body));
    EXPECT_TRUE(module.ok()) << module.error().message;
    const auto kernel = device_.find_kernel(*module, "k");
    Seen seen;
    seen.out.resize(size_t{kBlocks} * kThreads);
    const auto out = device_.allocate(seen.out.size() * 4);
    EXPECT_TRUE(kernel.ok() && out.ok() && device_.fill(*out, 0, seen.out.size() * 4).ok());
    struct {
      uint64_t out;
      uint32_t count;
    } const arguments{*out, n};
    const auto* bytes = reinterpret_cast<const uint8_t*>(&arguments);
    const auto status = device_.launch({.kernel = *kernel,
                                        .grid = {kBlocks, 1, 1},
                                        .block = {kThreads, 1, 1},
                                        .parameters = {bytes, size_t{12}}});
    EXPECT_TRUE(status.ok());
    seen.status = *status;
    for (const kv_simt_finding& f : device_.findings()) {
      seen.findings.push_back(std::to_string(f.ptx_line) + " " + f.message);
    }
    const kv_simt_counters counters = device_.counters();
    seen.warp_instructions = counters.warp_instructions;
    seen.thread_instructions = counters.thread_instructions;
    seen.divergent = counters.divergent_branches;
    EXPECT_TRUE(
        device_.copy(reinterpret_cast<uint64_t>(seen.out.data()), *out, seen.out.size() * 4).ok());
    device_.unload_module(*module);
    return seen;
  }
  /// Runs it both ways.
  Seen same(const std::string& body, uint32_t n) {
    const Seen moved = see(body, n, 0), as_written = see(body, n, KV_SIMT_COLLECT_VALUES);
    EXPECT_EQ(moved.out, as_written.out);
    EXPECT_EQ(moved.findings, as_written.findings);
    EXPECT_TRUE(moved == as_written);
    return moved;
  }

  Device& device_ = Device::instance();
};

/// The body as steps, and what the passes want to know.
struct Decoded {
  std::unique_ptr<ptx::Module> module;
  Lowered lowered;
  std::vector<uint32_t> live_at_entry;
};

inline Decoded decoded(const std::string& body) {
  Decoded d;
  auto module = ptx::parse_module(kernel_of(body));
  EXPECT_TRUE(module.ok()) << module.error().message;
  d.module = std::move(module).value();
  LowerInput input;
  input.module = d.module.get();
  input.kernel = &d.module->functions[0];
  input.variable_address = [](int32_t) { return uint64_t{0}; };
  const ptx::Instruction* where = nullptr;
  auto lowered = lower(input, &where);
  EXPECT_TRUE(lowered.ok());
  d.lowered = std::move(lowered).value();
  d.live_at_entry = allocate_registers(d.lowered)->live_at_entry;
  return d;
}

/// The line of a step within the body, from 1; 0 if it is before.
inline uint32_t line_of(const Step& s) {
  constexpr uint32_t kFirst = 13;  // line of the body
  return s.source->ptx_line < kFirst ? 0 : s.source->ptx_line - kFirst + 1;
}

}  // namespace kv::simt
