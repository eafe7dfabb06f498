// What must not be explained is refused, and the honest reading is held against the judge.
#include "harness/explain/trust.h"

#include <gtest/gtest.h>

#include "harness/explain/explain.h"
#include "harness/judge/fake_worker.h"
#include "harness/judge/judge.h"

namespace kv {
namespace {

constexpr uint32_t kLastStep = 3;  // of small_case()

Case with(void (*change)(Case&)) {
  Case c = small_case();
  change(c);
  return c;
}

void expect_refused(const Case& c, const std::string& what) {
  const auto e = explain(c,
                         [](const Case&) -> Result<Observation> {
                           ADD_FAILURE() << "a case that cannot be explained was run";
                           return bad_input("");
                         },
                         {});
  ASSERT_FALSE(e.ok()) << what;
  EXPECT_EQ(e.error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(e.error().message.find(what), 0u) << e.error().message;
}

TEST(Trust, RefusesWhatNoReadingHolds) {
  expect_refused(with([](Case& c) { c.engine.emplace(); }), "engine");
}

// Fails when the honest reading of a mask tensor or of a tree is not the judge's.
TEST(Trust, HoldsMaskTensorsAndTrees) {
  for (const MaskEncoding encoding :
       {MaskEncoding::kPackedBits, MaskEncoding::kBoolBlock, MaskEncoding::kAdditive}) {
    for (const bool broadcast : {false, true}) {
      Case c = small_case();
      c.mask.encoding = encoding;
      c.mask.broadcast_head = c.mask.broadcast_query = broadcast;
      auto& row = std::get<op::Step>(c.ops.back()).rows[0];
      row.append = row.queries = 3;
      row.tree_parents = {-1, 0, 0};
      const Observation seen = fake_observation(c);
      ASSERT_EQ(judge_observation(c, seen).outcome, Outcome::kPass);
      const Scene scene(c, seen, kLastStep);
      EXPECT_EQ(honest_defect(c, seen, kLastStep, scene), "");
      for (const RowAt& at : scene.rows()) EXPECT_TRUE(scene.contains(at, scene.honest(at)));
    }
  }
}

TEST(Trust, AcceptsTheReadingOfTheSameCase) {
  for (const bool sinks : {false, true}) {
    for (const Causal causal : {Causal::kNone, Causal::kTopLeft, Causal::kBottomRight}) {
      Case c = small_case();
      c.shape.sinks = sinks;
      c.shape.alibi = !sinks || causal == Causal::kTopLeft;
      c.mask.causal = causal;
      const Observation seen = fake_observation(c);
      ASSERT_EQ(judge_observation(c, seen).outcome, Outcome::kPass);
      EXPECT_EQ(honest_defect(c, seen, kLastStep, Scene(c, seen, kLastStep)), "");
    }
  }
}

// A PAD row that the plugin computes is judged: the scene must hold it, or its fault is taken for
// one of the honest reading.
TEST(Trust, HoldsThePadRowsThatAreComputed) {
  Case c = small_case();
  c.ops = {op::Admit{.request = RequestId(0), .prompt_tokens = 1},
           op::Step{{{.request = RequestId(0), .append = 1, .pad_left = 1, .queries = 2}}}};
  const Observation seen =
      fake_observation(c, {.visible = [](const PlannedRow&, uint32_t, std::vector<uint8_t>& sees) {
                         sees.back() = 1;
                       }});
  ASSERT_EQ(judge_observation(c, seen).outcome, Outcome::kFail);
  EXPECT_EQ(honest_defect(c, seen, 1, Scene(c, seen, 1)), "");
}

// A scene that forgets a part of the case: the planted bug of this check.
TEST(Trust, FindsAReadingThatLacksAPartOfTheCase) {
  void (*const forget[])(Case&) = {
      [](Case& c) { c.shape.sinks = false; },
      [](Case& c) { c.shape.alibi = false; },
      [](Case& c) { c.shape.softcap = 0; },
      [](Case& c) { c.mask.window_left = -1; },
  };
  const Case c = with([](Case& full) {
    full.shape.sinks = full.shape.alibi = true;
    full.shape.softcap = 3;
    full.mask.window_left = 2;
  });
  const Observation seen = fake_observation(c);
  ASSERT_EQ(judge_observation(c, seen).outcome, Outcome::kPass);
  EXPECT_EQ(honest_defect(c, seen, kLastStep, Scene(c, seen, kLastStep)), "");
  for (const auto change : forget) {
    Case other = c;
    change(other);
    EXPECT_NE(honest_defect(c, seen, kLastStep, Scene(other, seen, kLastStep)), "");
  }
}

}  // namespace
}  // namespace kv
