// Beams [A0, A1, B0], all prefixes distinct and equally long, reordered by a swap, a 3-cycle and
// with a repeat. Nothing but the bytes tells a wrong order: provenance does, at the reorder itself.
#include <gtest/gtest.h>

#include "harness/history/judge.h"
#include "harness/history/testing/plain_engine.h"

namespace kv {
namespace {

constexpr RequestId kA0(0), kA1(1), kB0(2);

Case reordered(std::vector<RequestId> sources) {
  Case c;
  c.shape.head_dim_k = c.shape.head_dim_v = 4;
  c.shape.query_heads = c.shape.kv_heads = 1;
  c.pool.page_slots = 4;
  c.pool.page_count = 32;
  c.engine = EngineLevel{.context_limit = 64};
  c.pool.overcommit = 16;
  const op::StepRow a{.request = kA0, .append = 5}, b{.request = kB0, .append = 6};
  c.ops = {op::Admit{.request = kA0, .prompt_tokens = 5},
           op::Admit{.request = kB0, .prompt_tokens = 6},
           op::Step{.rows = {a, b}},
           op::Fork{kA0, kA1},
           op::Step{.rows = {{.request = kA0, .append = 1}, {.request = kA1, .append = 1}}},
           op::Reorder{{kA0, kA1, kB0}, std::move(sources)},
           op::Step{.rows = {{.request = kA0, .append = 1},
                             {.request = kA1, .append = 1},
                             {.request = kB0, .append = 1}}}};
  return c;
}

MaybeFinding judged(const Case& c, Fault fault) {
  PlainEngine engine(c, fault);
  return run_history(c, engine, {}).finding;
}

TEST(Reorder, CorrectBeamsAreLeftInPeace) {
  for (const auto& sources :
       {std::vector{kB0, kA1, kA0}, std::vector{kA1, kB0, kA0}, std::vector{kA0, kA0, kB0}}) {
    const auto found = judged(reordered(sources), Fault::kNone);
    EXPECT_FALSE(found) << found->message;
  }
}

TEST(Reorder, BeamsThatStayWhatTheyWereAreFoundAtOnce) {
  for (const auto& sources :
       {std::vector{kB0, kA1, kA0}, std::vector{kA1, kB0, kA0}, std::vector{kA0, kA0, kB0}}) {
    const auto found = judged(reordered(sources), Fault::kReorderNothing);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->check, CheckClass::kProvenance) << found->message;
    EXPECT_EQ(found->op_index, 5u);
  }
}

TEST(Reorder, TheInversePermutationIsFoundWhereItIsAnother) {
  const auto cycle = judged(reordered({kA1, kB0, kA0}), Fault::kInversePermutation);
  ASSERT_TRUE(cycle);
  EXPECT_EQ(cycle->check, CheckClass::kProvenance);
  EXPECT_EQ(cycle->op_index, 5u);
  EXPECT_FALSE(judged(reordered({kB0, kA1, kA0}), Fault::kInversePermutation));
}

}  // namespace
}  // namespace kv
