// How kernels end other than by returning.
#include <gtest/gtest.h>

#include "harness/simt/exec/semantics_test/bench.h"

namespace kv::simt::semantics {
namespace {

constexpr const char* kHead =
    ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a) {\n";

LaunchStatus run(const std::string& body, uint64_t parameter) {
  Bench bench(kHead + body + "\n}\n", 80);
  return bench.launch_status({.block = {32, 1, 1}}, {parameter});
}

TEST(Ending, Trap) {
  EXPECT_EQ(run("trap;", 0), LaunchStatus::kTrapped);
  const char* const guarded =
      ".reg .b64 x; .reg .pred p; ld.param.u64 x, [a]; setp.ne.u64 p, x, 0; @p trap; ret;";
  EXPECT_EQ(run(guarded, 0), LaunchStatus::kCompleted);
  EXPECT_EQ(run(guarded, 1), LaunchStatus::kTrapped);
}

TEST(Ending, EndlessLoopIsAHang) {
  kv_simt_config config = Device::instance().config();
  const kv_simt_config before = config;
  config.instruction_budget = 100000;
  ASSERT_TRUE(Device::instance().configure(config).ok());
  EXPECT_EQ(run("A: bra A;", 0), LaunchStatus::kHung);
  ASSERT_TRUE(Device::instance().configure(before).ok());
}

/// Fails when time stands still on the device: delays by the clock would never end.
TEST(Ending, ADelayByTheClockEnds) {
  for (const char* clock : {"%clock64", "%globaltimer"}) {
    const std::string delay = std::string(".reg .b64 s, n; .reg .pred p; mov.u64 s, ") + clock +
                              ";\nA: mov.u64 n, " + clock +
                              "; sub.s64 n, n, s; setp.lt.s64 p, n, 500; @p bra A; ret;";
    EXPECT_EQ(run(delay, 0), LaunchStatus::kCompleted) << clock;
  }
}

}  // namespace
}  // namespace kv::simt::semantics
