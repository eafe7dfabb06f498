// The engine that attends by the definition is left in peace; each of its faults leaves every byte
// of the cache right and is found by values alone.
#include "harness/history/values.h"

#include <gtest/gtest.h>

#include "harness/gen/draw_history.h"
#include "harness/history/judge.h"
#include "harness/history/testing/attending_engine.h"

namespace kv {
namespace {

HistoryResult run(uint64_t index, Wrong wrong, double fraction) {
  PhiloxSource choices(7, index);
  const Case c = draw_history(choices, {.operations_max = 60, .attends = true, .formats = false});
  AttendingEngine engine(c, wrong);
  return run_history(c, engine, {.value_steps = fraction});
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
