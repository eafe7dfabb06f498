// The engine that attends by the definition is left in peace; each of its faults leaves every byte
// of the cache right and is found by values alone.
#include "harness/history/values.h"

#include <gtest/gtest.h>

#include "harness/gen/draw_history.h"
#include "harness/history/judge.h"
#include "harness/history/testing/attending_engine.h"

namespace kv {
namespace {

HistoryResult run(const Case& c, Wrong wrong, double fraction) {
  AttendingEngine engine(c, wrong);
  return run_history(c, engine, {.value_steps = fraction});
}

HistoryResult run(uint64_t index, Wrong wrong, double fraction) {
  PhiloxSource choices(7, index);
  return run(draw_history(choices, {.operations_max = 60, .attends = true, .formats = false}),
             wrong, fraction);
}

/// One whose append rotates, or quantises under scales.
Case draw_formatted(uint64_t index, bool rotates) {
  for (uint64_t i = 0;; ++i) {
    PhiloxSource choices(100 + index, i);
    Case c = draw_history(choices, {.operations_max = 60, .attends = true});
    const bool is_one =
        rotates ? c.shape.rope.pairing != RopePairing::kNone : c.shape.kv_scale != KvScale::kNone;
    if (is_one) return c;
  }
}

TEST(Values, LeaveTheDefinitionInPeace) {
  ValueCounts counts;
  for (uint64_t i = 0; i < 40; ++i) {
    const HistoryResult result = run(i, Wrong::kNothing, 1);
    ASSERT_FALSE(result.finding) << i << ": " << result.finding->message;
    counts += result.stats.values;
  }
  EXPECT_EQ(counts.not_offered, false);
  EXPECT_GT(counts.steps_judged, 100u);
  EXPECT_GT(counts.rows, 1000u);
}

class WrongValues : public testing::TestWithParam<Wrong> {};
TEST_P(WrongValues, AreFoundByValuesAlone) {
  uint64_t found = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    const HistoryResult result = run(i, GetParam(), 1);
    if (!result.finding) continue;
    EXPECT_EQ(result.finding->check, CheckClass::kValues) << result.finding->message;
    ++found;
  }
  EXPECT_GT(found, 3u);
}
INSTANTIATE_TEST_SUITE_P(Values, WrongValues,
                         testing::Values(Wrong::kNewestKey, Wrong::kScale, Wrong::kOtherRow,
                                         Wrong::kUnwritten, Wrong::kMissing, Wrong::kBaseTwo));

// Kills: a judge that attends to what K and V were before append changed them, or that turns Q
// otherwise than the contract says.
TEST(Values, LeaveTheDefinitionInPeaceWhereAppendRotatesOrQuantises) {
  ValueCounts counts;
  for (uint64_t i = 0; i < 40; ++i) {
    const Case c = draw_formatted(i, i % 2 == 0);
    const HistoryResult result = run(c, Wrong::kNothing, 1);
    ASSERT_FALSE(result.finding) << i << ": " << result.finding->message;
    counts += result.stats.values;
    // Nothing is let go before it is looked at but by a window, or while another step is in flight.
    const bool all_there = c.engine->async_depth == 0 && c.engine->groups.empty();
    if (all_there) {
      EXPECT_EQ(result.stats.values.rows_unread, 0u) << i;
    }
  }
  EXPECT_GT(counts.rows, 1000u);
  EXPECT_LT(counts.rows_unread, counts.rows);
}

class WrongFormats : public testing::TestWithParam<std::pair<Wrong, bool>> {};
TEST_P(WrongFormats, AreFoundByValuesAlone) {
  const auto [wrong, rotates] = GetParam();
  uint64_t found = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    const HistoryResult result = run(draw_formatted(i, rotates), wrong, 1);
    if (!result.finding) continue;
    EXPECT_EQ(result.finding->check, CheckClass::kValues) << result.finding->message;
    ++found;
  }
  EXPECT_GT(found, 3u);
}
INSTANTIATE_TEST_SUITE_P(Values, WrongFormats,
                         testing::Values(std::pair(Wrong::kQueryTurnedTooFar, true),
                                         std::pair(Wrong::kQueryNotTurned, true),
                                         std::pair(Wrong::kValueByKeyScale, false),
                                         std::pair(Wrong::kScaleOfNewest, false)));

TEST(Values, TakeASampleOfTheSteps) {
  ValueCounts half, none;
  for (uint64_t i = 0; i < 40; ++i) {
    half += run(i, Wrong::kNothing, 0.5).stats.values;
    none += run(i, Wrong::kScale, 0).stats.values;
  }
  EXPECT_GT(half.steps_judged, half.steps / 4);
  EXPECT_LT(half.steps_judged, half.steps * 3 / 4);
  EXPECT_EQ(none.rows, 0u);
}

// Kills: a judge that looks at outputs while the bytes behind them cannot be looked at yet, and
// names a wrong value where a slot holds another's token.
TEST(Values, WaitForTheBytes) {
  Case c;
  c.shape.head_dim_k = c.shape.head_dim_v = 8;
  c.pool.page_slots = 4;
  c.engine = EngineLevel{.context_limit = 64, .async_depth = 1};
  const op::Step next{.rows = {{.append = 1, .queries = 1}}};
  c.ops = {op::Admit{.prompt_tokens = 9},
           op::Step{.rows = {{.append = 6, .queries = 6}}},
           next,
           next,
           op::Complete{0},
           next};
  const auto found_in = [&c](Wrong wrong, Fault fault) {
    AttendingEngine engine(c, wrong, fault);
    return run_history(c, engine, {.value_steps = 1}).finding;
  };
  EXPECT_FALSE(found_in(Wrong::kNothing, Fault::kNone));
  const auto bytes = found_in(Wrong::kNothing, Fault::kWriteOtherToken);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->check, CheckClass::kProvenance) << bytes->message;
  const auto values = found_in(Wrong::kScale, Fault::kNone);
  ASSERT_TRUE(values);
  EXPECT_EQ(values->check, CheckClass::kValues) << values->message;
  EXPECT_EQ(values->op_index, 4u);
}

TEST(Values, AskAnEngineWithoutAttentionOnce) {
  class Refusing final : public Engine {
   public:
    explicit Refusing(const Case& c) : plain_(c, Fault::kNone) {}
    Answer perform(const Call& call) override {
      const auto* step = std::get_if<call::Step>(&call);
      if (step == nullptr || !step->wants_outputs) return plain_.perform(call);
      ++asked;
      return {.status = CallStatus::kUnsupported, .message = "no attention"};
    }
    Result<EngineState> snapshot(CacheKind cache) override { return plain_.snapshot(cache); }
    std::vector<SlotBytes> read(CacheKind cache, std::span<const SlotPlace> places) override {
      return plain_.read(cache, places);
    }
    int asked = 0;

   private:
    PlainEngine plain_;
  };
  PhiloxSource choices(7, 0);
  const Case c = draw_history(choices, {.attends = true, .formats = false});
  Refusing engine(c);
  const HistoryResult result = run_history(c, engine, {.value_steps = 1});
  EXPECT_FALSE(result.finding);
  EXPECT_EQ(engine.asked, 1);
  EXPECT_TRUE(result.stats.values.not_offered);
}

}  // namespace
}  // namespace kv
