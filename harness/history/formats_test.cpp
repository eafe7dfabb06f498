// Engines whose append turns K, or quantises: bytes that an append may write, moved as they are.
// Nothing here looks at an output. Each fault is found in a history of a few operations, and the
// same history leaves the correct engine in peace.
#include <gtest/gtest.h>

#include "harness/gen/draw_history.h"
#include "harness/history/judge.h"
#include "harness/history/testing/plain_engine.h"

namespace kv {
namespace {

constexpr RequestId kA(0), kB(1);

Case model(RopePairing pairing, DType stored, KvScale scale) {
  Case c;
  c.shape.head_dim_k = c.shape.head_dim_v = 8;
  c.shape.query_heads = c.shape.kv_heads = 2;
  c.shape.kv_dtype = stored;
  c.shape.kv_scale = scale;
  if (pairing != RopePairing::kNone) c.shape.rope = {pairing, 6, 10000.0};  // partial
  c.pool.page_slots = 4;
  c.pool.page_count = 32;
  c.pool.overcommit = 16;
  c.engine = EngineLevel{.host_page_count = 16, .context_limit = 64};
  return c;
}

op::Admit admit(RequestId request, uint64_t tokens) {
  return {.request = request, .prompt_tokens = tokens, .position_offset = 900};
}
op::Step step(RequestId request, uint32_t append) {
  return {.rows = {{.request = request, .append = append}}};
}

MaybeFinding judged(Case c, std::vector<Op> ops, Fault fault,
                    ShiftedKey shifted = ShiftedKey::kStays) {
  c.ops = std::move(ops);
  PlainEngine correct(c, Fault::kNone, shifted), engine(c, fault, shifted);
  const MaybeFinding silent = run_history(c, correct, {}).finding;
  EXPECT_FALSE(silent) << silent->message;
  return run_history(c, engine, {}).finding;
}

// Kills: a judge that is told the fault by anything but bytes, or at another operation.
void expect_found(const MaybeFinding& found, uint32_t at, const char* what) {
  ASSERT_TRUE(found);
  EXPECT_EQ(found->check, CheckClass::kProvenance) << found->message;
  EXPECT_EQ(found->op_index, at) << found->message;
  EXPECT_NE(found->message.find(what), std::string::npos) << found->message;
}

TEST(Formats, TheOtherPairsAreNamed) {
  for (const RopePairing pairing : {RopePairing::kNeox, RopePairing::kInterleaved}) {
    const Case c = model(pairing, DType::kF16, KvScale::kNone);
    expect_found(judged(c, {admit(kA, 5), step(kA, 5)}, Fault::kOtherPairing), 1,
                 "the other pairing");
  }
}

TEST(Formats, PositionsBehindAResumeAndARollback) {
  for (const DType stored : {DType::kF16, DType::kE4m3, DType::kI8}) {
    const KvScale scale = stored == DType::kF16 ? KvScale::kNone : KvScale::kToken;
    const Case c = model(RopePairing::kNeox, stored, scale);
    for (const bool swap : {false, true}) {
      expect_found(
          judged(c, {admit(kA, 5), step(kA, 5), op::Preempt{kA, swap}, op::Resume{kA}, step(kA, 3)},
                 Fault::kTurnAfterResume),
          4, "K of head 0");
    }
    expect_found(judged(c, {admit(kA, 6), step(kA, 6), op::Truncate{kA, 3}, step(kA, 2)},
                        Fault::kTurnAfterRollback),
                 3, "K of head 0");
  }
}

TEST(Formats, AWrongPositionIsNamedWhereTheCodesTell) {
  const Case c = model(RopePairing::kInterleaved, DType::kF16, KvScale::kNone);
  expect_found(judged(c, {admit(kA, 6), step(kA, 6), op::Truncate{kA, 3}, step(kA, 2)},
                      Fault::kTurnAfterRollback),
               3, "it is turned to position 904");
}

TEST(Formats, AReusedPageHasTheScaleOfItsOwnFirstToken) {
  const Case c = model(RopePairing::kNone, DType::kE4m3, KvScale::kPage);
  std::vector<Op> ops = {admit(kA, 5),  step(kA, 5),  op::Cancel{kA},
                         op::Evict{32}, admit(kB, 5), step(kB, 5)};
  expect_found(judged(c, ops, Fault::kStaleScale), 5, "is not its page's");
}

TEST(Formats, ACopiedPageTakesItsScaleAlong) {
  const Case c = model(RopePairing::kNone, DType::kI8, KvScale::kPage);
  expect_found(judged(c, {admit(kA, 6), step(kA, 6), op::Fork{kA, kB}}, Fault::kScaleOfFirstPage),
               2, "is not its page's");
}

// Kills: a judge that takes any admissible bytes after a move, where only those written are right.
TEST(Formats, MovedBytesAreThoseThatWereWritten) {
  Case c = model(RopePairing::kNeox, DType::kF16, KvScale::kNone);
  c.data.seed = 3;
  expect_found(judged(c, {admit(kA, 8), step(kA, 8), op::Preempt{kA, true}, op::Resume{kA}},
                      Fault::kMoveRoundsAgain),
               3, "as it was written and has not been again");
}

TEST(Formats, AShiftThatTurnsKTurnsItFromWhatWasStored) {
  for (const DType stored : {DType::kF16, DType::kE5m2}) {
    const KvScale scale = stored == DType::kF16 ? KvScale::kNone : KvScale::kToken;
    const Case c = model(RopePairing::kNeox, stored, scale);
    const std::vector<Op> ops = {admit(kA, 9), step(kA, 9),         op::Shift{kA, 2, 4},
                                 step(kA, 2),  op::Shift{kA, 1, 6}, op::Fork{kA, kB},
                                 step(kB, 1)};
    expect_found(judged(c, ops, Fault::kShiftTurnsLess, ShiftedKey::kIsTurned), 2, "K of head 0");
    // An engine that says that K stays must leave it alone.
    Case other = c;
    other.ops = ops;
    PlainEngine engine(other, Fault::kNone, ShiftedKey::kStays);
    EXPECT_FALSE(run_history(other, engine, {}).finding);
  }
}

TEST(Formats, RandomHistoriesOfAnEngineThatTurnsAreLeftInPeace) {
  uint64_t turned = 0;
  for (uint64_t i = 0; i < 150; ++i) {
    PhiloxSource choices(17, i);
    const Case c = draw_history(choices, {});
    PlainEngine engine(c, Fault::kNone, ShiftedKey::kIsTurned);
    const HistoryResult result = run_history(c, engine, {});
    ASSERT_FALSE(result.finding) << "history " << i << ": " << result.finding->message;
    const bool turns = c.shape.rope.pairing != RopePairing::kNone;
    for (const Op& op : c.ops) turned += turns && std::holds_alternative<op::Shift>(op);
  }
  EXPECT_GT(turned, 20u);
}

// Kills: a judge that forgets, while steps are in flight, where K was turned from.
TEST(Formats, TurnsInFlightAreJudgedWhenTheStepHasEnded) {
  Case c = model(RopePairing::kNeox, DType::kF16, KvScale::kNone);
  c.engine->async_depth = 2;
  const std::vector<Op> ops = {admit(kA, 9), step(kA, 9),         op::Shift{kA, 2, 4},
                               step(kA, 1),  op::Shift{kA, 0, 1}, op::Complete{1}};
  const auto found = judged(c, ops, Fault::kShiftTurnsLess, ShiftedKey::kIsTurned);
  expect_found(found, 5, "K of head 0");
}

TEST(Formats, AShiftUnderPageScalesMovesWholePages) {
  const Case c = model(RopePairing::kNone, DType::kE4m3, KvScale::kPage);
  const auto found =
      judged(c, {admit(kA, 10), step(kA, 10), op::Shift{kA, 4, 8}, op::Shift{kA, 1, 3}},
             Fault::kShiftAcrossScales);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->op_index, 3u);
  EXPECT_EQ(found->check, CheckClass::kAnswer);
}

}  // namespace
}  // namespace kv
