#include "fuzz/mutate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/case/json.h"
#include "harness/case/timeline.h"
#include "harness/case/validate.h"
#include "harness/gen/draw.h"

namespace kv::fuzzing {
namespace {

size_t add_one(uint8_t* data, size_t size, size_t) {
  if (size == 0) return data[0] = 1, 1;
  return ++data[0], size;
}

Case drawn(uint64_t seed) {
  PhiloxSource choices(seed, 0);
  return draw(choices);
}

TEST(Mutate, NothingBecomesWholeCases) {
  std::set<std::string> cases;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    Chunks chunks;
    mutate(chunks, seed, add_one);
    ASSERT_GT(chunks.size(), kSettingsChunks);
    PartedSource choices(chunks);
    cases.insert(case_to_json(draw(choices)));
  }
  EXPECT_EQ(cases.size(), 50U);
}

// Fails when a history drawn anew ends in the simplest operations, or does not fit into an input.
TEST(Mutate, AsManyOperationsAreDrawnAsAreAskedFor) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Chunks chunks;
    mutate(chunks, seed, add_one, 60);
    EXPECT_EQ(chunks.size(), kSettingsChunks + 60);
    for (const Chunk& chunk : chunks) EXPECT_FALSE(chunk.empty());
    EXPECT_LE(join(chunks).size(), 4096U);
  }
}

TEST(Mutate, MostlyAFewPartsChange) {
  Chunks chunks;
  mutate(chunks, 1, add_one);
  size_t few = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Chunks child = chunks;
    mutate(child, seed, add_one);
    size_t changed = child.size() != chunks.size();
    for (size_t i = 0; i < kSettingsChunks; ++i) changed += child[i] != chunks[i];
    few += changed <= 3;
  }
  EXPECT_GE(few, 120U);
}

TEST(Mutate, ACrossoverTakesEachPartFromOneParent) {
  const Chunks a(kSettingsChunks + 5, Chunk{1}), b(kSettingsChunks + 2, Chunk{2});
  std::set<size_t> from_b;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const Chunks child = crossed(a, b, seed);
    ASSERT_EQ(child.size(), a.size());
    size_t count = 0;
    for (size_t i = 0; i < child.size(); ++i) {
      ASSERT_TRUE(child[i] == Chunk{1} || child[i] == Chunk{2});
      count += child[i] == Chunk{2};
    }
    from_b.insert(count);
  }
  EXPECT_GT(from_b.size(), 4U);
}

TEST(Mutate, CasesStayLawfulAndDiffer) {
  size_t made = 0, different = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Case parent = drawn(seed);
    const auto child = mutated_case(parent, drawn(seed + 1000), seed);
    if (!child) continue;
    ++made;
    ASSERT_TRUE(check_case(*child).ok()) << seed;
    ASSERT_TRUE(Timeline::create(*child).ok()) << seed;
    Case named = parent;
    named.name = child->name;
    different += !(named == *child);
  }
  EXPECT_GE(made, 150U);
  EXPECT_GE(different, 120U);
}

}  // namespace
}  // namespace kv::fuzzing
