// Empty rows, PAD rows, trespasses and refusals: what holds whatever the values are.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "harness/judge/judge_fixture.h"
#include "harness/plugin/kverify_plugin.h"
#include "harness/simt/control/kv_simt_control.h"

namespace kv {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Case more_queries_than_slots() {
  Case c = small_case();
  c.ops[2] = op::Step{.rows = {{.request = RequestId{0}, .append = 2, .queries = 5},
                               {.request = RequestId{1}, .append = 6, .queries = 6}}};
  return c;
}

TEST(Judge, EmptyRowsPassAndAreCounted) {
  const Verdict v = judge(more_queries_than_slots());
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
  EXPECT_EQ(v.stats.rows_empty, 3u);
}

TEST(Judge, EmptyRowNan) {
  const auto faults = at_end([](Observation& o) { set_output(o, 2, 0, 0x7e00); });
  EXPECT_FAILS(judge(more_queries_than_slots(), faults), Stage::kContract, "empty-row-output");
}

TEST(Judge, EmptyRowLse) {
  const auto plus = at_end([](Observation& o) {
    for (int i = 0; i < 12; ++i) {
      for (auto& layer : o.ops[2].layers) {
        layer.lse[i] = std::numeric_limits<float>::infinity();
      }
    }
  });
  EXPECT_FAILS(judge(more_queries_than_slots(), plus), Stage::kContract, "empty-row-lse");
  const auto declared = at_end([&](Observation& o) {
    plus.finish(o);
    o.plugin.empty_row_lse = KV_EMPTY_LSE_PLUS_INF;
  });
  const Verdict v = judge(more_queries_than_slots(), declared);
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
}

Case padded_case() {
  Case c = small_case();
  c.ops[2] = op::Step{.rows = {{.request = RequestId{0}, .append = 5, .pad_left = 3, .queries = 8},
                               {.request = RequestId{1}, .append = 6, .queries = 6}}};
  c.ops.pop_back();
  return c;
}

// The first three query rows of the step are PAD; each has 4 heads of 16 outputs.
FakeFaults junk_in_pad_rows(uint32_t declared) {
  return at_end([declared](Observation& o) {
    o.plugin.pad_rows = declared;
    for (size_t i = 0; i < 3 * 4 * 16; ++i) set_output(o, 2, i, 0x7e00);
    for (size_t i = 0; i < 3 * 4; ++i) o.ops[2].layers[0].lse[i] = kNan;
  });
}

TEST(Judge, PaddedBatchPasses) {
  const Verdict v = judge(padded_case());
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
  EXPECT_EQ(v.stats.rows_pad, 3u);
}

TEST(Judge, PadRowJunkIsToleratedWhenUnspecified) {
  const Verdict v = judge(padded_case(), junk_in_pad_rows(KV_PAD_ROWS_UNSPECIFIED));
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
}

TEST(Judge, PadRowJunkFailsWhenAnythingElseIsDeclared) {
  EXPECT_FAILS(judge(padded_case(), junk_in_pad_rows(KV_PAD_ROWS_ZERO)), Stage::kContract,
               "pad-row-output");
  EXPECT_FAILS(judge(padded_case(), junk_in_pad_rows(KV_PAD_ROWS_UNWRITTEN)), Stage::kContract,
               "pad-row-written");
}

TEST(Judge, ZeroPadRowsPassWhereDeclaredAndAreNoEmptyRows) {
  const auto zeros = at_end([](Observation& o) {
    o.plugin.pad_rows = KV_PAD_ROWS_ZERO;
    for (size_t i = 0; i < 3 * 4 * 16; ++i) set_output(o, 2, i, 0);
    for (size_t i = 0; i < 3 * 4; ++i) {
      o.ops[2].layers[0].lse[i] = -std::numeric_limits<float>::infinity();
    }
  });
  const Verdict v = judge(padded_case(), zeros);
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
  EXPECT_EQ(v.stats.rows_pad, 3u);
  EXPECT_EQ(v.stats.rows_empty, 0u);
}

TEST(Judge, PadKeySeen) {
  const FakeFaults faults{
      .visible = [](const PlannedRow& row, uint32_t query, std::vector<uint8_t>& visible) {
        if (row.append_slots == 8 && query == 7) visible[1] = 1;
      }};
  EXPECT_FAILS(judge(padded_case(), faults), Stage::kInterval, "output-value");
}

}  // namespace
}  // namespace kv
