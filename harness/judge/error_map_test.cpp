#include "harness/judge/error_map.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/judge/judge_fixture.h"

namespace kv {
namespace {

double largest(const ErrorRow& row) {
  return row.ratios.empty() ? 0 : *std::max_element(row.ratios.begin(), row.ratios.end());
}

TEST(ErrorMap, ShowsALostKeyWhereItIsLost) {
  const Case c = small_case();
  const Observation seen = fake_observation(c, dropped_key());
  const Verdict v = judge_observation(c, seen);
  ASSERT_TRUE(v.divergence);
  const ErrorMap map = error_map(c, seen, *v.divergence);
  ASSERT_EQ(map.heads.size(), c.shape.query_heads);
  ASSERT_EQ(map.queries.size(), 1u);
  const ErrorRow& here = map.heads[static_cast<size_t>(v.divergence->head)];
  EXPECT_TRUE(here.here);
  ASSERT_EQ(here.ratios.size(), c.shape.head_dim_v);
  EXPECT_GT(here.ratios[static_cast<size_t>(v.divergence->dimension)], 1);
  EXPECT_EQ(here.ratios, map.queries[0].ratios);
}

TEST(ErrorMap, OfAConformingRunStaysBelowOne) {
  const Case c = small_case();
  const Observation seen = fake_observation(c);
  const ErrorMap map =
      error_map(c, seen, {.op_index = 2, .request = 0, .layer = 1, .head = 2, .query_slot = 7});
  ASSERT_EQ(map.queries.size(), 11u);
  for (const ErrorRow& row : map.queries) {
    EXPECT_EQ(row.ratios.size(), c.shape.head_dim_v);
    EXPECT_LT(largest(row), 1);
  }
}

TEST(ErrorMap, OfALargeStepIsBounded) {
  Case c = small_case();
  c.shape.query_heads = 128;
  c.shape.head_dim_v = 256;
  const Observation seen = fake_observation(c);
  const ErrorMap map = error_map(
      c, seen,
      {.op_index = 3, .request = 0, .layer = 0, .head = 127, .query_slot = 11, .dimension = 255});
  ASSERT_EQ(map.heads.size(), kErrorRowsMax);
  EXPECT_TRUE(map.heads.back().here);
  EXPECT_EQ(map.first_dimension, 128u);
  EXPECT_EQ(map.heads.back().ratios.size(), kErrorColumnsMax);
}

TEST(ErrorMap, OfAMalformedObservationIsEmpty) {
  const Case c = small_case();
  Observation seen = fake_observation(c);
  const Divergence d{.op_index = 3, .request = 0, .layer = 0, .head = 0, .query_slot = 11};
  EXPECT_FALSE(error_map(c, seen, d).heads.empty());
  seen.ops[3].layers[0].output.pop_back();
  EXPECT_TRUE(error_map(c, seen, d).heads.empty());
  seen.ops.clear();
  EXPECT_TRUE(error_map(c, seen, d).heads.empty());
}

}  // namespace
}  // namespace kv
