// The order of the stages, the device, hostile observations, options. The stages have their own.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/judge/device_stage.h"
#include "harness/judge/judge_fixture.h"
#include "harness/plugin/kverify_plugin.h"
#include "harness/simt/control/kv_simt_control.h"

namespace kv {
namespace {

TEST(Judge, ACorrectPluginPasses) {
  const Verdict v = judge(small_case());
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
  EXPECT_EQ(v.variant, "fake");
  EXPECT_EQ(v.stats.rows_judged, 2u * 4 * (11 + 6 + 2));  // layers, heads, queries
  EXPECT_EQ(v.stats.elements_judged, v.stats.rows_judged * 17);
  EXPECT_EQ(v.stats.slots_judged, 2u * (11 + 6 + 2));
}

TEST(Judge, AnErrorInsideTheBoundPassesAndIsMeasured) {
  const auto faults = at_end([](Observation& o) {
    float& lse = o.ops[2].layers[1].lse[7];
    lse = std::nextafter(lse, 100.0f);
  });
  const Verdict v = judge(small_case(), faults);
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
  EXPECT_GT(v.stats.error_bound_ratio_max, 0);
  EXPECT_LT(v.stats.error_bound_ratio_max, 1);
}

// Every judged element is counted once, whether or not it sets a new maximum.
TEST(Judge, CountsWhereErrorsLieWhenAsked) {
  ErrorDistribution all;
  const Verdict v = judge(small_case(), {}, {.distribution = &all});
  EXPECT_EQ(all.count(), v.stats.elements_judged);
  EXPECT_EQ(all.largest(), v.stats.error_bound_ratio_max);
  EXPECT_GT(all.exact(), 0u);
}

TEST(Judge, Trespass) {
  const auto faults = at_end([](Observation& o) {
    o.ops[2].trespasses.push_back(
        {.tensor = "query", .offset_bytes = 12, .bytes_changed = 1, .want = 3, .got = 4});
  });
  const Verdict v = judge(small_case(), faults);
  EXPECT_FAILS(v, Stage::kContract, "trespass");
  EXPECT_EQ(v.divergence->tensor, "query");
}

TEST(Judge, LawfulOperationRefused) {
  const auto faults = at_end([](Observation& o) {
    o.ops[2].status = OpStatus::kRefused;
    o.ops[2].message = "no";
    o.ops[2].layers.clear();
    o.ops.resize(3);
  });
  EXPECT_FAILS(judge(small_case(), faults), Stage::kContract, "refused");
}

TEST(Judge, UnsupportedIsNeitherPassNorFailure) {
  const auto op = at_end([](Observation& o) {
    o.ops[2].status = OpStatus::kUnsupported;
    o.ops.resize(3);
  });
  EXPECT_EQ(judge(small_case(), op).outcome, Outcome::kUnsupported);
  const auto end = at_end([](Observation& o) {
    o.ops.clear();
    o.end = {.outcome = RunOutcome::kUnsupported, .message = "head_dim"};
  });
  EXPECT_EQ(judge(small_case(), end).outcome, Outcome::kUnsupported);
}

DeviceFinding finding(uint32_t kind) {
  DeviceFinding f;
  f.kind = kind;
  f.kernel = "attend";
  f.message = "two threads wrote 4 bytes";
  return f;
}

TEST(Judge, DeviceFindingComesBeforeAnythingElse) {
  const auto faults = at_end([](Observation& o) {
    set_output(o, 2, 0, 0x7e00);
    o.ops[2].findings.push_back(finding(KV_SIMT_KIND_RACE));
  });
  const Verdict v = judge(small_case(), faults);
  EXPECT_FAILS(v, Stage::kDevice, "device:race");
  EXPECT_EQ(v.findings.size(), 1u);
}

TEST(Judge, SameValueRacesAndLeaksAreReportedApart) {
  const auto faults = at_end([](Observation& o) {
    o.ops[2].findings.push_back(finding(KV_SIMT_KIND_RACE_SAME_VALUE));
    o.end.findings.push_back(finding(KV_SIMT_KIND_LEAK));
  });
  const Verdict v = judge(small_case(), faults);
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
  EXPECT_EQ(v.findings.size(), 2u);
  EXPECT_FAILS(judge(small_case(), faults, {.leaks_fail = true}), Stage::kDevice, "device:leak");
}

// Fails when a harmless finding of an engine's kernels would fail its history, or when what keeps a
// kernel from running goes unsaid.
TEST(Judge, HarmlessFindingsDecideNothing) {
  const std::vector<DeviceFinding> all = {finding(KV_SIMT_KIND_RACE_SAME_VALUE),
                                          finding(KV_SIMT_KIND_RACE), finding(KV_SIMT_KIND_LEAK),
                                          finding(KV_SIMT_KIND_UNSUPPORTED)};
  const auto kinds = [&](const DevicePolicy& policy) {
    std::vector<uint32_t> kinds;
    for (const DeviceFinding& f : decisive_findings(all, policy)) kinds.push_back(f.kind);
    return kinds;
  };
  using Kinds = std::vector<uint32_t>;
  EXPECT_EQ(kinds({}), (Kinds{KV_SIMT_KIND_RACE, KV_SIMT_KIND_UNSUPPORTED}));
  EXPECT_EQ(kinds({.leaks_fail = true}),
            (Kinds{KV_SIMT_KIND_RACE, KV_SIMT_KIND_LEAK, KV_SIMT_KIND_UNSUPPORTED}));
}

DeviceFinding race_at(const char* file, uint32_t line) {
  DeviceFinding f = finding(KV_SIMT_KIND_RACE);
  f.source_file = file;
  f.source_line = line;
  return f;
}

TEST(Judge, AcceptedFindingsAreCountedAndFailNothing) {
  const std::vector<Suppression> accepted = {{"race", {"tile.cuh", 7}, "the lanes are converged"}};
  const auto judge_with = [&](const DeviceFinding& f) {
    return judge(small_case(), at_end([&](Observation& o) { o.ops[2].findings = {f}; }),
                 {.suppressions = accepted});
  };
  const Verdict v = judge_with(race_at("/src/tile.cuh", 7));
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
  EXPECT_EQ(v.stats.findings_suppressed, 1u);
  EXPECT_TRUE(v.findings.empty());
  EXPECT_FAILS(judge_with(race_at("/src/tile.cuh", 8)), Stage::kDevice, "device:race");
  EXPECT_FAILS(judge_with(race_at("/src/other_tile.cuh", 7)), Stage::kDevice, "device:race");
  DeviceFinding crowd = race_at("/src/tile.cuh", 7);
  crowd.not_kept = 1;
  EXPECT_FAILS(judge_with(crowd), Stage::kDevice, "device:race");
}

TEST(Judge, UnknownInstructionIsUnsupported) {
  const auto faults = at_end(
      [](Observation& o) { o.ops[2].findings.push_back(finding(KV_SIMT_KIND_UNSUPPORTED)); });
  EXPECT_EQ(judge(small_case(), faults).outcome, Outcome::kUnsupported);
}

TEST(Judge, WorkerEnds) {
  const auto ends = [](RunOutcome outcome) {
    return at_end([outcome](Observation& o) {
      o.ops.resize(2);
      o.end = {.outcome = outcome, .message = "SIGSEGV", .op_index = 2};
    });
  };
  EXPECT_FAILS(judge(small_case(), ends(RunOutcome::kCrashed)), Stage::kDevice, "crash");
  EXPECT_FAILS(judge(small_case(), ends(RunOutcome::kHung)), Stage::kDevice, "hang");
  EXPECT_FAILS(judge(small_case(), ends(RunOutcome::kMemory)), Stage::kDevice, "memory");
  EXPECT_EQ(judge(small_case(), ends(RunOutcome::kEnvironment)).outcome, Outcome::kError);
  EXPECT_EQ(judge(small_case(), ends(RunOutcome::kCompleted)).outcome, Outcome::kError);
}

TEST(Judge, RepeatsThatDifferAreAFailureOnlyWherePromised) {
  const auto differs = [](uint32_t promises) {
    return at_end([promises](Observation& o) {
      o.plugin.promises = promises;
      o.ops[2].repeat_differences.push_back({.repeat = 1, .elements_changed = 2});
    });
  };
  EXPECT_EQ(judge(small_case(), differs(0)).outcome, Outcome::kPass);
  EXPECT_EQ(judge(small_case(), differs(KV_PROMISE_DETERMINISTIC)).outcome,
            Outcome::kNondeterministic);
}

TEST(Judge, MalformedObservationsAreErrors) {
  const std::vector<std::function<void(Observation&)>> changes = {
      [](Observation& o) { o.ops[2].layers.pop_back(); },
      [](Observation& o) { o.ops[2].layers[0].output.pop_back(); },
      [](Observation& o) { o.ops[2].layers[0].lse.clear(); },
      [](Observation& o) { o.ops[2].layers[1].layer = 77; },
      [](Observation& o) { o.ops[2].pages[0].bytes.edit([](auto& b) { b.pop_back(); }); },
      [](Observation& o) { o.ops[2].pages[0].page = PageId{1u << 30}; },
      [](Observation& o) { o.ops[2].pages[0].layer = 1u << 30; },
      [](Observation& o) { o.ops[2].op_index = 9; },
      [](Observation& o) { o.ops.push_back(o.ops[3]); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    EXPECT_EQ(judge(small_case(), at_end(changes[i])).outcome, Outcome::kError) << i;
  }
}

TEST(Judge, InvalidCaseIsAnError) {
  Case c = small_case();
  const Observation o = fake_observation(c);
  c.ops[2] = op::Step{.rows = {{.request = RequestId{9}, .append = 1, .queries = 1}}};
  EXPECT_EQ(judge_observation(c, o).outcome, Outcome::kError);
}

TEST(Judge, SamplingLeavesRowsOutAndSaysSo) {
  const Verdict all = judge(small_case());
  const Verdict some = judge(small_case(), {}, {.sample_rows = 0.5});
  EXPECT_EQ(some.outcome, Outcome::kPass);
  EXPECT_GT(some.stats.rows_left_out, 0u);
  EXPECT_LT(some.stats.rows_judged, all.stats.rows_judged);
  EXPECT_EQ(some.stats.rows_judged + some.stats.rows_left_out, all.stats.rows_judged);
  EXPECT_EQ(some.stats.slots_judged, all.stats.slots_judged);
}

TEST(Judge, StopsAtTheFirstFailure) {
  const Case c = small_case();
  const Observation o =
      fake_observation(c, at_end([](Observation& x) { set_output(x, 2, 0, 0x7e00); }));
  Judge judge(c, {});
  judge.begin(o.plugin);
  judge.add(o.ops[0]);
  judge.add(o.ops[1]);
  EXPECT_FALSE(judge.decided());
  judge.add(o.ops[2]);
  EXPECT_TRUE(judge.decided());
  EXPECT_EQ(judge.finish({}).failure_class, "output-nan");
}

TEST(Judge, VacuousIsNotAPass) {
  Case c = small_case();
  c.shape.scale = 1e5f;
  const Verdict v = judge(c);
  EXPECT_EQ(v.outcome, Outcome::kVacuous) << v.message;
  Case nothing;
  nothing.ops.push_back(op::Admit{.request = RequestId{0}, .prompt_tokens = 1});
  EXPECT_EQ(judge(nothing).outcome, Outcome::kVacuous);
}

}  // namespace
}  // namespace kv
