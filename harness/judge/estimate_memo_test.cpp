// Fails when a noted estimate serves a question that differs in anything, when it differs from what
// would be computed, or when an equal question is computed again.
#include "harness/judge/estimate_memo.h"

#include <gtest/gtest.h>

#include "harness/judge/judge_fixture.h"

namespace kv {
namespace {

EstimateMemo with_notes_of(const Case& c) {
  EstimateMemo memo;
  memo.take_notes(true);
  EXPECT_EQ(judge(c, {}, {.estimates = &memo}).outcome, Outcome::kPass);
  memo.take_notes(false);
  EXPECT_EQ(memo.hits(), 0u);
  EXPECT_GT(memo.bytes(), 0u);
  return memo;
}

TEST(EstimateMemo, EqualQuestionsGetTheSameVerdict) {
  const Case c = small_case();
  EstimateMemo memo = with_notes_of(c);
  for (const FakeFaults& faults : {FakeFaults{}, dropped_key()}) {
    const Verdict computed = judge(c, faults), noted = judge(c, faults, {.estimates = &memo});
    EXPECT_EQ(noted.outcome, computed.outcome);
    EXPECT_EQ(noted.message, computed.message);
    EXPECT_EQ(noted.stats.elements_judged, computed.stats.elements_judged);
    EXPECT_EQ(noted.stats.error_bound_ratio_max, computed.stats.error_bound_ratio_max);
    EXPECT_EQ(noted.stats.escalated, computed.stats.escalated);
  }
  const uint64_t heads = memo.hits();
  EXPECT_GT(heads, 0u);
  Case elsewhere = c;
  elsewhere.pool.order = PageOrder::kReversed;
  EXPECT_EQ(judge(elsewhere, {}, {.estimates = &memo}).outcome, Outcome::kPass);
  EXPECT_GT(memo.hits(), heads);
}

TEST(EstimateMemo, OtherQuestionsAreComputed) {
  const Case c = small_case();
  const auto hits = [&](auto change) {
    EstimateMemo memo = with_notes_of(c);
    Case changed = c;
    change(changed);
    const Verdict noted = judge(changed, {}, {.estimates = &memo}), computed = judge(changed);
    EXPECT_EQ(noted.outcome, computed.outcome);
    EXPECT_EQ(noted.stats.error_bound_ratio_max, computed.stats.error_bound_ratio_max);
    return memo.hits();
  };
  EXPECT_EQ(hits([](Case& o) { o.data.seed += 1; }), 0u);
  EXPECT_EQ(hits([](Case& o) { o.shape.scale *= 2; }), 0u);
  EXPECT_EQ(hits([](Case& o) { o.shape.alibi = true; }), 0u);
  EXPECT_EQ(hits([](Case& o) { o.shape.sinks = true; }), 0u);
  EXPECT_EQ(hits([](Case& o) { o.data.view.key_exponent = 1; }), 0u);
  EXPECT_EQ(hits([](Case& o) { o.data.view.value_rotation = 1; }), 0u);
  EXPECT_LT(hits([](Case& o) { o.mask.window_left = 1; }),
            hits([](Case& o) { o.pool.poison = Poison::kNan; }));
}

TEST(EstimateMemo, WithoutNotesNothingIsKept) {
  EstimateMemo memo;
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(judge(small_case(), {}, {.estimates = &memo}).outcome, Outcome::kPass);
  EXPECT_EQ(memo.bytes(), 0u);
  EXPECT_EQ(memo.hits(), 0u);
}

}  // namespace
}  // namespace kv
