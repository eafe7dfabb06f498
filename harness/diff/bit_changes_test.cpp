// Fails when a changed bit of O, LSE or the cache is not counted where it is, or an equal one is.
#include "harness/diff/bit_changes.h"

#include <gtest/gtest.h>

#include <limits>

namespace kv {
namespace {

Case small() {
  Case c;
  c.shape.query_heads = 2;
  c.shape.head_dim_v = 4;
  return c;
}

/// 3 tokens of 2 heads, in one layer; one page.
OpObservation step(const Case& c) {
  OpObservation seen;
  seen.status = OpStatus::kOk;
  LayerResult layer;
  layer.output.resize(3 * c.shape.query_heads * c.shape.head_dim_v * 2);
  layer.lse.resize(3 * c.shape.query_heads);
  seen.layers = {layer};
  seen.pages = {{.page = PageId(4), .bytes = std::vector<std::byte>(8)}};
  return seen;
}

BitChanges compared(const Case& c, const OpObservation& a, const OpObservation& b) {
  BitChanges changes;
  add_step(c, a, b, changes);
  return changes;
}

TEST(BitChanges, EqualStepsHaveNone) {
  const Case c = small();
  const BitChanges changes = compared(c, step(c), step(c));
  EXPECT_FALSE(changes.any());
  EXPECT_EQ(changes.rows, 6u);
  EXPECT_EQ(changes.elements, 24u);
  EXPECT_EQ(changes.pages, 1u);
}

TEST(BitChanges, CountsElementsRowsAndUlps) {
  const Case c = small();
  OpObservation after = step(c);
  after.layers[0].output[2 * (2 * 4 + 1)] = std::byte{3};  // row 2, dimension 1
  after.layers[0].output[2 * (2 * 4 + 3)] = std::byte{1};
  const BitChanges changes = compared(c, step(c), after);
  EXPECT_TRUE(changes.any());
  EXPECT_EQ(changes.elements_changed, 2u);
  EXPECT_EQ(changes.rows_changed, 1u);
  EXPECT_EQ(changes.lse_changed, 0u);
  EXPECT_EQ(changes.ulps_max, 3u);
}

TEST(BitChanges, CountsLseAndTheCacheToo) {
  const Case c = small();
  OpObservation after = step(c);
  after.layers[0].lse[5] = -0.0f;
  EXPECT_EQ(compared(c, step(c), after).lse_changed, 1u);
  EXPECT_EQ(compared(c, step(c), after).rows_changed, 1u);
  after = step(c);
  after.pages[0].bytes.edit([](auto& bytes) { bytes[7] = std::byte{1}; });
  EXPECT_EQ(compared(c, step(c), after).pages_changed, 1u);
  EXPECT_TRUE(compared(c, step(c), after).any());
  after.pages[0].page = PageId(5);
  EXPECT_EQ(compared(c, step(c), after).pages_changed, 2u);
}

TEST(BitChanges, WhatOneBuildDidNotFinishIsToldApart) {
  const Case c = small();
  OpObservation after = step(c);
  after.status = OpStatus::kFailed;
  EXPECT_EQ(compared(c, step(c), after).steps_incomparable, 1u);
  after = step(c);
  after.layers[0].lse.pop_back();  // nothing of an observation is trusted
  EXPECT_EQ(compared(c, step(c), after).steps_incomparable, 1u);
  EXPECT_TRUE(compared(c, step(c), after).any());
}

TEST(UlpDistance, CountsRepresentableNumbers) {
  EXPECT_EQ(ulp_distance(DType::kF16, 0x3c00, 0x3c00), 0u);
  EXPECT_EQ(ulp_distance(DType::kF16, 0x3c00, 0x3bff), 1u);
  EXPECT_EQ(ulp_distance(DType::kF16, 0x0001, 0x8001), 3u);
  EXPECT_EQ(ulp_distance(DType::kF32, 0x7f800000, 0x7f7fffff), 1u);
  EXPECT_EQ(ulp_distance(DType::kBf16, 0x7fc0, 0x3f80), std::numeric_limits<uint64_t>::max());
}

}  // namespace
}  // namespace kv
