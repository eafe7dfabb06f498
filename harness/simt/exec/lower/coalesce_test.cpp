// Registers that share a place because a move connects them hold what they held before. Each kernel
// names the mistake that would show in it.
#include "harness/simt/exec/lower/coalesce.h"

#include "harness/simt/exec/lower/as_written.h"

namespace kv::simt {
namespace {

class CoalesceTest : public AsWritten {};

using Lines = std::vector<uint32_t>;

/// Lines of `body` whose moves go.
Lines lines_gone(const std::string& body) {
  Decoded d = decoded(body);
  coalesce_moves(d.lowered, d.live_at_entry);
  Lines lines;
  for (const Step& s : d.lowered.steps) {
    if (s.elsewhere) lines.push_back(line_of(s));
  }
  return lines;
}

TEST_F(CoalesceTest, MoveAtTheEndOfALoopGoes) {
  const std::string body =
      "mov.u32 %r2, 0;\nagain:\nadd.s32 %r3, %r2, 3;\nsetp.lt.s32 %p1, %r3, %n;\n"
      "mov.u32 %r2, %r3;\n@%p1 bra again;\nadd.s32 %r1, %r2, %t;";
  EXPECT_EQ(lines_gone(body), Lines{5});
  EXPECT_EQ(same(body, 10).out[1], 13u);
}

TEST_F(CoalesceTest, ValueThatIsStillNeededKeepsItsPlace) {
  // One place for both would add the new value to itself.
  const std::string body =
      "add.s32 %r2, %t, 1;\nmov.u32 %r3, %r2;\nadd.s32 %r3, %r3, %n;\nmul.lo.s32 %r1, %r2, %r3;";
  EXPECT_EQ(lines_gone(body), Lines{});
  EXPECT_EQ(same(body, 4).out[2], 3u * 7u);
}

TEST_F(CoalesceTest, SourceWrittenAgainKeepsItsPlace) {
  const std::string body =
      "add.s32 %r2, %t, 1;\nmov.u32 %r3, %r2;\nadd.s32 %r2, %r2, %n;\nmul.lo.s32 %r1, %r2, %r3;";
  EXPECT_EQ(lines_gone(body), Lines{});
  EXPECT_EQ(same(body, 4).out[2], 7u * 3u);
}

TEST_F(CoalesceTest, TwoThatChangePlaces) {
  const std::string body =
      "mov.u32 %r2, %t;\nmov.u32 %r3, %n;\nmov.u32 %r5, 0;\nagain:\nmov.u32 %r4, %r2;\n"
      "mov.u32 %r2, %r3;\nmov.u32 %r3, %r4;\nadd.s32 %r5, %r5, 1;\nsetp.lt.s32 %p1, %r5, 3;\n"
      "@%p1 bra again;\nmad.lo.s32 %r1, %r2, 100, %r3;";
  EXPECT_EQ(lines_gone(body).size(), 2u);
  EXPECT_EQ(same(body, 7).out[5], 705u);
}

TEST_F(CoalesceTest, LanesThatLeaveEarlyKeepTheirOwn) {
  const std::string body =
      "and.b32 %r5, %t, 7;\nmov.u32 %r2, 0;\nagain:\nadd.s32 %r3, %r2, 1;\n"
      "setp.gt.s32 %p1, %r3, %r5;\n@%p1 bra out;\nmov.u32 %r2, %r3;\nbra again;\nout:\n"
      "add.s32 %r1, %r2, %n;";
  const Seen seen = same(body, 10);
  EXPECT_EQ(seen.out[3], 13u);
  EXPECT_EQ(seen.out[7], 17u);
  EXPECT_GT(seen.divergent, 0u);
}

TEST_F(CoalesceTest, GuardedWriteIsAWrite) {
  const std::string body =
      "add.s32 %r2, %t, 1;\nmov.u32 %r3, %r2;\nsetp.lt.s32 %p1, %t, %n;\n"
      "@%p1 add.s32 %r3, %r3, 50;\nsub.s32 %r1, %r3, %r2;";
  EXPECT_EQ(lines_gone(body), Lines{});
  const Seen seen = same(body, 2);
  EXPECT_EQ(seen.out[1], 50u);
  EXPECT_EQ(seen.out[2], 0u);
}

TEST_F(CoalesceTest, UndefinedDataPassesThePlaceOfAMove) {
  const std::string body =
      ".shared .b32 x[64];\nmov.u32 %r6, x;\nld.shared.u32 %r2, [%r6];\nmov.u32 %r3, %r2;\n"
      "add.s32 %r1, %r3, 1;";
  EXPECT_EQ(lines_gone(body), Lines{4});
  const Seen seen = same(body, 0);
  ASSERT_EQ(seen.findings.size(), 1u);
  EXPECT_NE(seen.findings[0].find("shared offset 0"), std::string::npos) << seen.findings[0];
}

TEST_F(CoalesceTest, RegisterThatMayBeUnwrittenKeepsItsPlace) {
  const std::string body =
      "setp.eq.u32 %p1, %n, 0;\n@%p1 bra skip;\nadd.s32 %r2, %t, 5;\nskip:\nmov.u32 %r3, %r2;\n"
      "add.s32 %r1, %r3, 1;";
  EXPECT_EQ(lines_gone(body), Lines{});
  EXPECT_EQ(same(body, 0).findings.size(), 1u);
  EXPECT_TRUE(same(body, 1).findings.empty());
}

}  // namespace
}  // namespace kv::simt
