#include "harness/serving/contiguous_arena.h"

#include <gtest/gtest.h>

#include <vector>

#include "harness/core/philox.h"

namespace kv {
namespace {

TEST(ContiguousArena, GapsBlockWhatFreeMemoryWouldHold) {
  ContiguousArena arena(10);
  for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(arena.reserve(i, 2));
  arena.release(1);
  arena.release(3);
  EXPECT_EQ(arena.space().free, 4u);
  EXPECT_EQ(arena.space().longest, 2u);
  EXPECT_DOUBLE_EQ(external_fragmentation(arena.space()), 0.5);
  EXPECT_FALSE(arena.reserve(7, 4));
  EXPECT_EQ(arena.blocked_by_gaps(), 1u);
  EXPECT_FALSE(arena.reserve(8, 5));
  EXPECT_EQ(arena.without_room(), 1u);
  arena.release(2);  // joins both gaps
  EXPECT_EQ(arena.space().longest, 6u);
  EXPECT_TRUE(arena.reserve(7, 4));
}

// Against a plain array of cells.
TEST(ContiguousArena, AgreesWithCells) {
  constexpr uint64_t kSize = 37;
  ContiguousArena arena(kSize);
  std::vector<uint64_t> cells(kSize, 0);  // holder + 1
  Philox words{3};
  for (uint64_t i = 0; i < 3000; ++i) {
    const uint64_t holder = words.word(0, 2 * i) % 8, size = 1 + words.word(0, 2 * i + 1) % 12;
    if (std::count(cells.begin(), cells.end(), holder + 1) > 0) {
      arena.release(holder);
      std::replace(cells.begin(), cells.end(), holder + 1, uint64_t{0});
    } else {
      const auto gap = std::search_n(cells.begin(), cells.end(), size, uint64_t{0});
      ASSERT_EQ(arena.reserve(holder, size), gap != cells.end()) << i;
      if (gap != cells.end()) std::fill_n(gap, size, holder + 1);
    }
    uint64_t longest = 0, run = 0;
    for (const uint64_t cell : cells) longest = std::max(longest, run = cell == 0 ? run + 1 : 0);
    ASSERT_EQ(arena.space().longest, longest) << i;
    ASSERT_EQ(arena.space().free, uint64_t(std::count(cells.begin(), cells.end(), 0u))) << i;
  }
}

}  // namespace
}  // namespace kv
