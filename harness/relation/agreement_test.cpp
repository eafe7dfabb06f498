// Disagreements are found and told of the right case; agreement is silent.
#include "harness/relation/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "harness/judge/fake_worker.h"
#include "harness/plugin/kverify_plugin.h"
#include "harness/relation/draw_related.h"
#include "harness/relation/pair_judge.h"

namespace kv {
namespace {

Case related(const char* name) {
  Case c = small_case();
  c.exec.relation = name;
  return c;
}

struct PairFaults {
  FakeFaults of_case, of_image;
  uint32_t promises = ~0u;
};

PairVerdict judged(const Case& c, const PairFaults& faults) {
  const auto image = image_of(c).value();
  EXPECT_TRUE(image.has_value());
  Observation first = fake_observation(c, faults.of_case);
  const Observation second = fake_observation(image->c, faults.of_image);
  first.plugin.promises = faults.promises;
  PairJudge judge(c, image, first.plugin, {});
  for (const OpObservation& op : first.ops) judge.add(op);
  judge.end_case(first.end);
  for (const OpObservation& op : second.ops) judge.add(op);
  return judge.finish(&second.end);
}

/// The last bit of one LSE, which every error bound allows.
FakeFaults last_bit() {
  FakeFaults faults;
  faults.finish = [](Observation& o) {
    float& lse = o.ops.back().layers.at(0).lse.back();
    lse = std::bit_cast<float>(std::bit_cast<uint32_t>(lse) ^ 1u);
  };
  return faults;
}

TEST(Agreement, IsSilentWhereResultsAgree) {
  for (const char* name : {"pages", "layout", "poison", "schedule", "call_again", "batch_order",
                           "alone", "heads_rotated", "value_channels", "power_of_two", "company",
                           "history", "graph", "liveness"}) {
    const PairVerdict told = judged(related(name), {});
    EXPECT_EQ(told.verdict.outcome, Outcome::kPass) << name << ": " << told.verdict.message;
  }
}

TEST(Agreement, FindsOneBitThatNoBoundForbids) {
  const PairVerdict told = judged(related("pages"), {.of_image = last_bit()});
  EXPECT_EQ(told.verdict.outcome, Outcome::kFail);
  EXPECT_EQ(told.verdict.stage, Stage::kMetamorphic);
  EXPECT_EQ(told.verdict.failure_class, "relation:pages");
  EXPECT_EQ(told.c.exec.relation, "pages");
  ASSERT_TRUE(told.verdict.divergence.has_value());
  EXPECT_EQ(told.verdict.divergence->tensor, "lse");
}

/// The same, in steps that ran another variant than the case's.
FakeFaults last_bit_of_another_variant() {
  FakeFaults faults = last_bit();
  faults.finish = [finish = faults.finish](Observation& o) {
    finish(o);
    for (OpObservation& op : o.ops) op.variant = "another";
  };
  return faults;
}

// Fails when a forced variant that only one of two batches can take counts as a promise broken;
// and, by its twin, when a kernel that a plugin chooses by company is no longer found.
TEST(Agreement, ComparesStepsOfOneVariantOnlyWhereTheCaseForcesIt) {
  Case c = related("alone");
  const PairFaults faults = {.of_image = last_bit_of_another_variant()};
  EXPECT_EQ(judged(c, faults).verdict.failure_class, "relation:alone");
  c.exec.variant = "forced";
  EXPECT_EQ(judged(c, faults).verdict.outcome, Outcome::kPass);
  EXPECT_EQ(judged(c, {.of_image = last_bit()}).verdict.failure_class, "relation:alone");
}

/// As judged(), with the case judged before, without its relation.
PairVerdict judged_after(const Case& c, const PairFaults& faults) {
  Case alone = c;
  alone.exec.relation.clear();
  Observation first = fake_observation(alone, faults.of_case);
  first.plugin.promises = faults.promises;
  PairJudge before(alone, std::nullopt, first.plugin, {});
  before.keep_run();
  for (const OpObservation& op : first.ops) before.add(op);
  before.end_case(first.end);
  const auto image = image_of(c).value();
  PairJudge judge(c, image, first.plugin, {});
  judge.take_run(before.run().value());
  const Observation second = fake_observation(image->c, faults.of_image);
  for (const OpObservation& op : second.ops) judge.add(op);
  return judge.finish(&second.end);
}

TEST(Agreement, ACaseThatWasJudgedBeforeIsHeldAgainstItsImageAllTheSame) {
  EXPECT_EQ(judged_after(related("pages"), {}).verdict.outcome, Outcome::kPass);
  const PairVerdict told = judged_after(related("pages"), {.of_image = last_bit()});
  EXPECT_EQ(told.verdict.outcome, Outcome::kFail);
  EXPECT_EQ(told.verdict.failure_class, "relation:pages");
  EXPECT_EQ(told.verdict.message,
            judged(related("pages"), {.of_image = last_bit()}).verdict.message);
  FakeFaults wrong;
  wrong.kv_head = [](uint32_t) { return 0; };
  EXPECT_NE(judged_after(related("pages"), {.of_image = wrong}).verdict.stage, Stage::kMetamorphic);
}

TEST(Agreement, ARunThatFailedIsNotKept) {
  FakeFaults wrong;
  wrong.kv_head = [](uint32_t) { return 0; };
  const Observation seen = fake_observation(small_case(), wrong);
  PairJudge judge(small_case(), std::nullopt, seen.plugin, {});
  judge.keep_run();
  for (const OpObservation& op : seen.ops) judge.add(op);
  judge.end_case(seen.end);
  EXPECT_FALSE(judge.run().has_value());
}

// Fails when what a mask or a schedule must not change in the cache is not compared: within the
// admissible set of a rotated or converted element no other stage can tell.
TEST(Agreement, ACacheThatFollowsTheMaskIsFound) {
  const Case c = related("liveness");
  const Observation first = fake_observation(c);
  Observation second = fake_observation(c);
  EXPECT_FALSE(cache_disagreement({c, first.ops}, {c, second.ops}).has_value());
  const auto with_pages = std::find_if(second.ops.begin(), second.ops.end(),
                                       [](const OpObservation& o) { return !o.pages.empty(); });
  ASSERT_NE(with_pages, second.ops.end());
  with_pages->pages.back().bytes.edit([](auto& bytes) { bytes.front() ^= std::byte{1}; });
  const auto found = cache_disagreement({c, first.ops}, {c, second.ops});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->failure_class, "relation:liveness");
  // K of a shifted design is made from the scale: with another one, append is given something else.
  Case shifted = c, scaled = c;
  shifted.data.view.logit_shift = scaled.data.view.logit_shift = -20;
  scaled.shape.scale *= 2;
  EXPECT_FALSE(cache_disagreement({shifted, first.ops}, {scaled, second.ops}).has_value());
  EXPECT_TRUE(cache_disagreement({shifted, first.ops}, {shifted, second.ops}).has_value());
  const Relation& liveness = *find_relation("liveness");
  EXPECT_TRUE(cache_promised(liveness, {.promises = KV_PROMISE_DETERMINISTIC}));
  EXPECT_FALSE(cache_promised(liveness, {.promises = 0}));
  EXPECT_FALSE(cache_promised(*find_relation("constant_value"), {.promises = ~0u}));
}

TEST(Agreement, IsNoFailureWherePlacesArePermittedToMatter) {
  EXPECT_EQ(judged(related("pages"), {.of_image = last_bit(), .promises = 0}).verdict.outcome,
            Outcome::kPass);
}

TEST(Agreement, AFailureOfOneSideIsToldOfThatSideAlone) {
  FakeFaults wrong;
  wrong.kv_head = [](uint32_t) { return 0; };
  const PairVerdict first = judged(related("pages"), {.of_case = wrong});
  EXPECT_EQ(first.verdict.outcome, Outcome::kFail);
  EXPECT_NE(first.verdict.stage, Stage::kMetamorphic);
  EXPECT_TRUE(first.c.exec.relation.empty());
  EXPECT_EQ(first.c.pool, small_case().pool);
  const PairVerdict second = judged(related("pages"), {.of_image = wrong});
  EXPECT_EQ(second.verdict.outcome, Outcome::kFail);
  EXPECT_NE(second.c.pool, small_case().pool);
}

}  // namespace
}  // namespace kv
