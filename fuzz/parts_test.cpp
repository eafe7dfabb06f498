#include "fuzz/parts.h"

#include <gtest/gtest.h>

#include "harness/case/timeline.h"
#include "harness/case/validate.h"
#include "harness/gen/draw.h"
#include "harness/gen/draw_history.h"

namespace kv::fuzzing {
namespace {

std::vector<uint8_t> random_bytes(uint64_t seed, size_t count) {
  PhiloxSource choices(seed, 9);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(choices.below(256));
  return bytes;
}

Case case_of(const std::vector<uint8_t>& bytes) {
  const Chunks chunks = split(bytes);
  PartedSource choices(chunks);
  return draw(choices, {.limits = {.steps = 1, .slots = 64, .queries = 8, .head_dim = 64}});
}

TEST(Parts, WhatJoinWritesSplitReads) {
  Chunks chunks = {{}, {1, 2, 3}, Chunk(kChunkBytesMax, 7), {0}};
  EXPECT_EQ(split(join(chunks)), chunks);
  chunks.push_back(Chunk(kChunkBytesMax + 9, 1));  // is cut
  EXPECT_EQ(split(join(chunks)).back().size(), kChunkBytesMax);
}

TEST(Parts, AnyBytesAreALawfulSmallCase) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Case c = case_of(random_bytes(seed, seed * 3));
    ASSERT_TRUE(check_case(c).ok()) << seed;
    ASSERT_TRUE(Timeline::create(c).ok()) << seed;
    EXPECT_LE(c.shape.head_dim_k, 64U);
    for (const Op& operation : c.ops) {
      const auto* step = std::get_if<op::Step>(&operation);
      if (step == nullptr) continue;
      for (const op::StepRow& row : step->rows) {
        EXPECT_LE(row.queries, 8U) << seed;
        EXPECT_LE(row.pad_left + row.append + row.pad_right, 64U) << seed;
      }
    }
  }
}

TEST(Parts, AnyBytesAreALawfulHistory) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Chunks chunks = split(random_bytes(seed, seed * 5));
    PartedSource choices(chunks);
    ASSERT_TRUE(check_case(draw_history(choices, {.operations_max = 40})).ok()) << seed;
  }
}

// The reason for chunks: in a plain stream a change of the shape would move all that follows.
TEST(Parts, AChangeInOnePartLeavesTheOthers) {
  Chunks chunks(kSettingsChunks + 2);
  for (size_t i = 0; i < chunks.size(); ++i) chunks[i] = random_bytes(i, 30);
  chunks[0] = Chunk(40, 1);  // every axis may be used
  Chunk& mask = chunks[static_cast<size_t>(Part::kMask)];
  mask = {0};  // bottom-right
  const Case before = case_of(join(chunks));
  mask = {2};  // none
  const Case after = case_of(join(chunks));
  EXPECT_EQ(before.mask.causal, Causal::kBottomRight);
  EXPECT_EQ(after.mask.causal, Causal::kNone);
  EXPECT_EQ(before.shape, after.shape);
  EXPECT_EQ(before.pool.order, after.pool.order);
  EXPECT_EQ(before.data.seed, after.data.seed);
  EXPECT_EQ(before.ops.size(), after.ops.size());
}

}  // namespace
}  // namespace kv::fuzzing
