// What is computed once for a launch changes nothing that anybody sees. Each kernel names the
// mistake that would show in it.
#include "harness/simt/exec/lower/hoist.h"

#include "harness/simt/exec/lower/as_written.h"

namespace kv::simt {
namespace {

class HoistTest : public AsWritten {};

using Lines = std::vector<uint32_t>;

Decoded hoisted(const std::string& body) {
  Decoded d = decoded(body);
  hoist_invariants(d.lowered, d.live_at_entry, 12);
  return d;
}

/// Lines of `body` at whose place nothing is done any more.
Lines moved_lines(const std::string& body) {
  const Decoded d = hoisted(body);
  Lines lines;
  for (const Step& s : d.lowered.steps) {
    if (s.elsewhere && line_of(s)) lines.push_back(line_of(s));
  }
  return lines;
}

size_t prologue_steps(const std::string& body) { return hoisted(body).lowered.prologue; }

TEST_F(HoistTest, ParametersAndThreadsMove) {
  // The second block would not find the values if registers of the body shared their places.
  const std::string body =
      "mul.lo.s32 %r2, %n, 3;\nadd.s32 %r3, %t, %r2;\nadd.s32 %r4, %b, %r3;\n"
      "mul.lo.s32 %r5, %r4, %r4;\nsub.s32 %r1, %r5, %r3;";
  EXPECT_EQ(moved_lines(body), (Lines{1, 2}));
  const Seen seen = same(body, 5);
  for (uint32_t k = 0; k < kBlocks * kThreads; ++k) {
    const uint32_t third = k % kThreads + 15, fourth = k / kThreads + third;
    ASSERT_EQ(seen.out[k], fourth * fourth - third) << k;
  }
}

TEST_F(HoistTest, BlockIndexStays) {
  // Only the move goes: the sum takes %ctaid.x itself.
  const std::string body = "mov.u32 %r2, %ctaid.x;\nadd.s32 %r1, %r2, %n;";
  EXPECT_EQ(moved_lines(body), Lines{1});
  const Seen seen = same(body, 7);
  EXPECT_EQ(seen.out[0], 7u);
  EXPECT_EQ(seen.out[2 * kThreads], 9u);
}

TEST_F(HoistTest, CounterOfALoopStays) {
  const std::string body =
      "mov.u32 %r1, 0;\nagain:\nadd.s32 %r1, %r1, 1;\nsetp.lt.s32 %p1, %r1, %n;\n"
      "@%p1 bra again;";
  EXPECT_EQ(moved_lines(body), Lines{});
  EXPECT_EQ(same(body, 9).out[5], 9u);
}

TEST_F(HoistTest, GuardedWriteStays) {
  const std::string body = "mov.u32 %r1, 4;\nsetp.lt.u32 %p1, %t, %n;\n@%p1 mov.u32 %r1, 5;";
  EXPECT_EQ(moved_lines(body), Lines{2});
  const Seen seen = same(body, 3);
  EXPECT_EQ(seen.out[2], 5u);
  EXPECT_EQ(seen.out[3], 4u);
}

TEST_F(HoistTest, RegisterThatMayBeUnwrittenStays) {
  const std::string body =
      "setp.eq.u32 %p1, %n, 0;\n@%p1 bra skip;\nmov.u32 %r2, 5;\nskip:\nadd.s32 %r1, %r2, 1;";
  EXPECT_EQ(moved_lines(body), Lines{1});
  const Seen seen = same(body, 0);
  ASSERT_EQ(seen.findings.size(), 1u);
  EXPECT_NE(seen.findings[0].find("never written"), std::string::npos) << seen.findings[0];
  EXPECT_TRUE(same(body, 1).findings.empty());
}

TEST_F(HoistTest, ParameterOutsideIsReportedWhereItIsRead) {
  const std::string body =
      "mov.u32 %r1, 1;\nsetp.eq.u32 %p1, %n, 0;\n@%p1 bra skip;\nld.param.u32 %r2, [count+4];\n"
      "add.s32 %r1, %r2, 1;\nskip:";
  EXPECT_EQ(moved_lines(body), Lines{2});
  EXPECT_EQ(same(body, 1).findings.size(), 1u);
  EXPECT_TRUE(same(body, 0).findings.empty());
}

TEST_F(HoistTest, AddressOfAParameterIsFollowed) {
  const std::string body =
      "mov.b64 %rd3, out;\nadd.s64 %rd4, %rd3, 4;\nld.param.u32 %r2, [%rd4+4];\n"
      "ld.param.u32 %r3, [%rd4+8];\nadd.s32 %r1, %r2, 1;";
  EXPECT_EQ(moved_lines(body), (Lines{1, 2, 3, 5}));  // the fourth lies outside
  EXPECT_NE(same(body, 6).status, LaunchStatus::kCompleted);
}

TEST_F(HoistTest, FirstValueOfALoopIsKnownBeforeIt) {
  // Line 1 remains, as a copy; what reads the register in or behind the loop does not know it.
  const std::string body =
      "add.s32 %r2, %n, 1;\nshl.b32 %r3, %r2, 2;\nagain:\nadd.s32 %r2, %r2, %r3;\n"
      "shl.b32 %r4, %r2, 1;\nsetp.lt.s32 %p1, %r2, 100;\n@%p1 bra again;\n"
      "add.s32 %r5, %r2, %r4;\nadd.s32 %r1, %r5, %t;";
  EXPECT_EQ(moved_lines(body), Lines{2});
  EXPECT_EQ(same(body, 5).out[3], 102u + 204u + 3u);
}

TEST_F(HoistTest, SecondWriteInABlockEndsTheFirst) {
  const std::string body =
      "mov.u32 %r2, 3;\nadd.s32 %r3, %r2, %n;\nadd.s32 %r2, %r2, %b;\n"
      "setp.eq.u32 %p1, %t, 7;\n@%p1 mov.u32 %r2, 40;\nmad.lo.s32 %r1, %r2, 100, %r3;";
  EXPECT_EQ(moved_lines(body), (Lines{2, 4}));
  const Seen seen = same(body, 6);
  EXPECT_EQ(seen.out[2 * kThreads], 509u);
  EXPECT_EQ(seen.out[2 * kThreads + 7], 4009u);
}

TEST_F(HoistTest, EqualValuesAreComputedOnce) {
  // Not equal: another operation, another order of the operands.
  const std::string body =
      "sub.s32 %r2, %t, %n;\nld.param.u32 %r3, [count];\nsub.s32 %r4, %t, %r3;\n"
      "sub.s32 %r5, %n, %t;\nadd.s32 %r6, %t, %n;\nmad.lo.s32 %r7, %r2, %r4, %r5;\n"
      "add.s32 %r1, %r7, %r6;";
  EXPECT_EQ(moved_lines(body), (Lines{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(prologue_steps(body), prologue_steps("") + 5);
  const Seen seen = same(body, 10);
  EXPECT_EQ(seen.out[3], uint32_t(-7 * -7 + 7 + 13));
}

TEST_F(HoistTest, CodeFromLastToFirstIsNotSearchedForEver) {
  // Each value waits for one that stands behind it; after some passes the rest stays.
  std::string body = "bra b2;\n";
  for (int k = 13; k >= 2; --k) {
    const std::string number = std::to_string(k),
                      before = k == 2 ? "%n" : "%r" + std::to_string(k - 1);
    body += "b" + number + ": add.s32 %r" + number + ", " + before + ", " + number + ";\nbra " +
            (k == 13 ? "out" : "b" + std::to_string(k + 1)) + ";\n";
  }
  body += "out: add.s32 %r1, %r13, %t;";
  const size_t moved = moved_lines(body).size();
  EXPECT_GT(moved, 1u);
  EXPECT_LT(moved, 12u);
  EXPECT_EQ(same(body, 10).out[3], 10u + 90u + 3u);
}

TEST_F(HoistTest, ClockAndLanesStay) {
  const std::string body =
      "mov.u32 %r2, %clock;\nactivemask.b32 %r3;\nxor.b32 %r4, %r2, %r2;\nadd.s32 %r1, %r4, %r3;";
  EXPECT_EQ(moved_lines(body), Lines{});
  EXPECT_EQ(same(body, 6).out[0], ~0u);
}

TEST_F(HoistTest, DivergentLoopCountsAsWritten) {
  const std::string body =
      "and.b32 %r2, %t, 3;\nmov.u32 %r1, 0;\nagain:\nmul.lo.s32 %r3, %n, %r2;\n"
      "add.s32 %r1, %r1, 1;\nsetp.le.u32 %p1, %r1, %r3;\n@%p1 bra again;";
  EXPECT_EQ(moved_lines(body), (Lines{1, 4}));
  const Seen seen = same(body, 2);
  EXPECT_EQ(seen.out[3], 7u);
  EXPECT_GT(seen.divergent, 0u);
}

}  // namespace
}  // namespace kv::simt
