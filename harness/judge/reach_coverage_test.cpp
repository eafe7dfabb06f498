// An engineered case becomes one that would expose the loss of any key.
#include "harness/judge/reach_coverage.h"

#include <gtest/gtest.h>

namespace kv {
namespace {

// One query over many keys of random weight: most of them weigh too little to be missed.
Case one_query(uint32_t keys) {
  Case c;
  c.pool = {.page_slots = 16, .page_count = (keys + 15) / 16};
  c.data.seed = 3;
  c.data.design = Design::kLargeScores;
  c.ops = {op::Admit{.request = RequestId(0), .prompt_tokens = keys},
           op::Step{.rows = {{.request = RequestId(0), .append = keys, .queries = 1}}}};
  return c;
}

TEST(ReachCoverage, AddsRowsOrDesignsUntilEveryLossIsCertified) {
  const Case c = one_query(96);
  const CaseCoverage before = case_coverage(c, {}).value();
  ASSERT_FALSE(before.complete());
  const ReachedCase reached = reach_coverage(c, {}).value();
  EXPECT_TRUE(reached.coverage.complete()) << coverage_text(reached.coverage);
  EXPECT_GT(reached.looked_at, 1u);
  EXPECT_EQ(case_coverage(reached.c, {}).value().complete(), true);
  EXPECT_EQ(reached.c.ops.size(), c.ops.size());
  EXPECT_EQ(reached.c.shape, c.shape);
}

TEST(ReachCoverage, WhatIsCompleteStays) {
  Case c = one_query(4);
  c.data.design = Design::kCensus;
  const ReachedCase reached = reach_coverage(c, {}).value();
  EXPECT_EQ(reached.c, c);
  EXPECT_EQ(reached.looked_at, 1u);
}

// No V shows a key that nobody may see; data that is given is not drawn anew.
TEST(ReachCoverage, KeepsGivenDataAndSaysWhatIsMissing) {
  Case c = one_query(96);
  c.mask.causal = Causal::kNone;
  c.data.overrides = {{.tensor = 2, .request = RequestId(0), .value = 1.0}};
  const ReachedCase reached = reach_coverage(c, {}).value();
  EXPECT_EQ(reached.c.data.design, c.data.design);
  EXPECT_LE(reached.looked_at, 2u);
}

}  // namespace
}  // namespace kv
