// Each twin leaves the engine that attends by the definition in peace, and finds what stays within
// every bound and is wrong in the way that the twin is for.
#include "harness/history/twin.h"

#include <gtest/gtest.h>

#include <memory>

#include "harness/gen/draw_history.h"
#include "harness/history/testing/attending_engine.h"
#include "harness/plugin/kverify_plugin.h"

namespace kv {
namespace {

constexpr uint64_t kHistories = 80;
constexpr Conventions kPromising = {.promises =
                                        KV_PROMISE_BATCH | KV_PROMISE_PAGE | KV_PROMISE_CHUNK};

struct Told {
  uint64_t twins = 0, shared = 0, found = 0;
  std::string message;
  std::string_view check;
};

Told run(std::string_view relation, Wrong wrong, const Conventions& conventions) {
  Told told;
  for (uint64_t i = 0; i < kHistories && told.found == 0; ++i) {
    PhiloxSource choices(9, i);
    Case c = draw_history(choices, {.operations_max = 60, .attends = true, .formats = false});
    c.exec.relation = relation;
    c.exec.relation_seed = i;
    std::unique_ptr<AttendingEngine> engine;
    const MakeEngine make = [&](const Case& one) -> Result<Engine*> {
      engine = std::make_unique<AttendingEngine>(one, wrong);
      return engine.get();
    };
    const auto result = run_with_twin(c, make, {.conventions = conventions});
    EXPECT_TRUE(result.ok());
    told.twins += result->stats.twins;
    told.shared += result->stats.values.shared;
    if (!result->finding) continue;
    ++told.found;
    told.check = check_name(result->finding->check);
    told.message = result->finding->twin + ": " + result->finding->message;
    EXPECT_LE(result->finding->op_index, c.ops.size());
  }
  return told;
}

class Silent : public testing::TestWithParam<std::string_view> {};
TEST_P(Silent, OnTheDefinition) {
  const Told told = run(GetParam(), Wrong::kNothing, kPromising);
  EXPECT_EQ(told.found, 0u) << told.message;
  EXPECT_GT(told.twins, 1u);
  EXPECT_GT(told.shared, 30u) << "nothing was held against the first run";
}
INSTANTIATE_TEST_SUITE_P(Twin, Silent,
                         testing::Values("alone", "never-speculated", "without-cancelled", "cold",
                                         "never-preempted", "recomputed", "beams-renamed"));

struct Planted {
  std::string_view relation;
  Wrong wrong;
};
class Finds : public testing::TestWithParam<Planted> {};
TEST_P(Finds, WhatNothingElseDoes) {
  const Told told = run(GetParam().relation, GetParam().wrong, kPromising);
  EXPECT_GT(told.found, 0u);
  EXPECT_EQ(told.check, "echo") << told.message;
  // Without the promise it is no fault.
  EXPECT_EQ(run(GetParam().relation, GetParam().wrong, {}).found, 0u);
}
INSTANTIATE_TEST_SUITE_P(Twin, Finds,
                         testing::Values(Planted{"alone", Wrong::kInCompany},
                                         Planted{"never-speculated", Wrong::kAfterTruncate},
                                         Planted{"without-cancelled", Wrong::kAfterCancel},
                                         Planted{"never-preempted", Wrong::kAfterResume},
                                         Planted{"recomputed", Wrong::kAfterRestore},
                                         Planted{"beams-renamed", Wrong::kAfterReorder}));

TEST(Twin, NamesAreThoseThatTheGeneratorDraws) {
  std::set<std::string> drawn;
  for (uint64_t i = 0; i < 400; ++i) {
    PhiloxSource choices(3, i);
    Case c;
    draw_twin(choices, c);
    drawn.insert(c.exec.relation);
  }
  EXPECT_EQ(drawn.size(), twin_relations().size() + 1);  // or none
  for (const std::string& name : drawn) EXPECT_EQ(find_twin(name) == nullptr, name.empty());
}

}  // namespace
}  // namespace kv
