// Registers that are read before they are written: found where the value decides something, silent
// where no thread takes the path. Each faulty kernel has a twin that differs in its launch only.
#include "harness/simt/exec/lower/watch.h"

#include <gtest/gtest.h>

#include <string>

#include "harness/simt/device.h"

namespace kv::simt {
namespace {

class WatchTest : public ::testing::Test {
 protected:
  /// Runs `body` with 32 threads; %n is the argument, %rd1 points to 128 zero bytes, %tid is there.
  void run(const std::string& body, uint32_t n) {
    device_.reset();
    kv_simt_config config = device_.config();
    config.checks = KV_SIMT_CHECK_ALL & ~uint32_t{KV_SIMT_CHECK_LEAK};
    ASSERT_TRUE(device_.configure(config).ok());
    const std::string text =
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .u64 out, .param .u32 count) {\n"
        ".reg .b32 %r<16>; .reg .b32 %n; .reg .b32 %t; .reg .b64 %rd<4>; .reg .pred %p<8>;\n"
        "ld.param.u64 %rd1, [out];\nld.param.u32 %n, [count];\nmov.u32 %t, %tid.x;\n" +
        body + "\nret;\n}\n";
    const auto module = device_.load_module(text);
    ASSERT_TRUE(module.ok()) << module.error().message;
    const auto kernel = device_.find_kernel(*module, "k");
    ASSERT_TRUE(kernel.ok());
    const auto out = device_.allocate(128);
    ASSERT_TRUE(out.ok() && device_.fill(*out, 0, 128).ok());
    struct {
      uint64_t out;
      uint32_t count;
    } const arguments{*out, n};
    const auto* bytes = reinterpret_cast<const uint8_t*>(&arguments);
    const auto status =
        device_.launch({.kernel = *kernel, .block = {32, 1, 1}, .parameters = {bytes, size_t{12}}});
    EXPECT_TRUE(status.ok() && *status == LaunchStatus::kCompleted);
    device_.unload_module(*module);
  }
  void expect_finding(uint32_t lane) {
    ASSERT_EQ(device_.findings().size(), 1u);
    const kv_simt_finding& f = device_.findings()[0];
    EXPECT_EQ(f.kind, uint32_t{KV_SIMT_KIND_UNDEFINED});
    EXPECT_EQ(f.thread[0], lane);
    EXPECT_NE(std::string(f.message).find("never written"), std::string::npos) << f.message;
  }
  void expect_silence() {
    EXPECT_EQ(device_.finding_count(), 0u)
        << (device_.findings().empty() ? "" : device_.findings()[0].message);
  }

  Device& device_ = Device::instance();
};

constexpr char kStore[] = "st.global.u32 [%rd1], %r3;";

TEST_F(WatchTest, WrittenOnOnePathOnly) {
  const std::string body = std::string(
                               "setp.eq.u32 %p1, %n, 0;\n@%p1 bra skip;\nmov.b32 %r1, 5;\n"
                               "skip:\nadd.s32 %r3, %r1, 1;\n") +
                           kStore;
  run(body, 0);
  expect_finding(0);
  run(body, 1);
  expect_silence();
}

TEST_F(WatchTest, WrittenBySomeLanesOnly) {
  const std::string body =
      "setp.lt.u32 %p1, %t, %n;\n@%p1 mov.b32 %r1, 5;\n"
      "setp.ne.u32 %p2, %r1, 5;\n@%p2 bra end;\nst.global.u32 [%rd1], %n;\nend:";
  run(body, 7);
  expect_finding(7);
  run(body, 32);
  expect_silence();
}

TEST_F(WatchTest, AnInstructionThatTheSameLanesSkipReadsNothing) {
  const std::string body = std::string(
                               "mov.b32 %r3, 0;\nsetp.lt.u32 %p1, %t, %n;\n"
                               "@%p1 mov.b32 %r1, 5;\n@%p1 add.s32 %r3, %r1, 1;\n") +
                           kStore;
  run(body, 7);
  expect_silence();
}

TEST_F(WatchTest, FirstTurnOfALoopWrites) {
  // As compilers leave it: the first turn fills what all turns read.
  const std::string body = std::string(
                               "mov.b32 %r2, %n;\nagain:\nsetp.ne.u32 %p1, %r2, 0;\n"
                               "@%p1 bra filled;\nmov.b32 %r1, 9;\nfilled:\n"
                               "add.s32 %r3, %r1, %r2;\nadd.s32 %r2, %r2, 1;\n"
                               "setp.lt.u32 %p2, %r2, 4;\n@%p2 bra again;\n") +
                           kStore;
  run(body, 1);
  expect_finding(0);
  run(body, 0);
  expect_silence();
}

TEST_F(WatchTest, PredicateThatGuardsAnEffect) {
  const std::string body =
      "setp.eq.u32 %p1, %n, 0;\n@%p1 bra skip;\nsetp.eq.u32 %p3, %t, 3;\n"
      "skip:\n@%p3 st.global.u32 [%rd1], %n;";
  run(body, 0);
  expect_finding(0);
  run(body, 1);
  expect_silence();
}

TEST_F(WatchTest, UnusedValueIsNobodysBusiness) {
  const std::string body = std::string(
                               "setp.eq.u32 %p1, %n, 0;\n@%p1 bra skip;\nmov.b32 %r1, 5;\nskip:\n"
                               "selp.b32 %r3, %n, %r1, %p1;\n") +
                           kStore;
  run(body, 0);
  expect_silence();
}

TEST_F(WatchTest, WideRegister) {
  const std::string body =
      "setp.eq.u32 %p1, %n, 0;\n@%p1 bra skip;\nmov.b64 %rd2, 5;\nskip:\n"
      "st.global.u64 [%rd1], %rd2;";
  run(body, 0);
  expect_finding(0);
  run(body, 1);
  expect_silence();
}

TEST(Watch, NothingIsCheckedTwiceOnAPath) {
  Lowered lowered;
  lowered.registers.resize(2);
  lowered.steps.resize(4);
  lowered.steps[0].sources = {0};       // check
  lowered.steps[1].sources = {0};       // known by now
  lowered.steps[2].destinations = {0};  // known by now
  lowered.steps[3].sources = {0, 1};    // 1 is not watched
  const Watch watch = watch_registers(lowered, {0});
  EXPECT_EQ(watch.checks[0].size(), 1u);
  for (size_t k = 1; k < 4; ++k) {
    EXPECT_TRUE(watch.checks[k].empty() && watch.marks[k].empty()) << k;
  }
}

}  // namespace
}  // namespace kv::simt
