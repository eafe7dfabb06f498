#include "harness/simt/check/global_race.h"

#include <gtest/gtest.h>

#include <vector>

namespace kv::simt {
namespace {

constexpr uint32_t kClock = 5;
constexpr uint32_t kFloor = BlockStamp::floor(kClock - 1);

/// One granule and the blocks of a launch; each access says whether it races.
struct Granule {
  uint32_t writer = 0, reader = 0;
  bool read(uint64_t block, uint32_t clock = kClock) {
    return global_read_one(&writer, &reader, BlockStamp::make(clock, block),
                           BlockStamp::floor(clock - 1));
  }
  bool write(uint64_t block, uint32_t clock = kClock) {
    return global_write_one(&writer, &reader, BlockStamp::make(clock, block),
                            BlockStamp::floor(clock - 1));
  }
};

TEST(GlobalRace, ReadOfAnotherBlocksWrite) {
  Granule g;
  EXPECT_FALSE(g.write(0));
  EXPECT_TRUE(g.read(1));
}
TEST(GlobalRace, ReadOfTheOwnWriteIsSilent) {
  Granule g;
  EXPECT_FALSE(g.write(3));
  EXPECT_FALSE(g.read(3));
  EXPECT_FALSE(g.write(3));
}
TEST(GlobalRace, WriteOverAnotherBlocksReadOrWrite) {
  Granule read, written;
  EXPECT_FALSE(read.read(0));
  EXPECT_TRUE(read.write(1));
  EXPECT_FALSE(written.write(0));
  EXPECT_TRUE(written.write(1));
}
TEST(GlobalRace, ManyReadersAreSilentUntilOneWrites) {
  Granule g;
  for (uint64_t block = 0; block < 10; ++block) EXPECT_FALSE(g.read(block));
  EXPECT_TRUE(g.write(9)) << "the others have read it too";
}
TEST(GlobalRace, TheLaunchBeforeIsOrdered) {
  Granule g;
  EXPECT_FALSE(g.write(0));
  EXPECT_FALSE(g.read(0));
  EXPECT_FALSE(g.read(1, kClock + 1));
  EXPECT_FALSE(g.write(1, kClock + 1));
}

TEST(GlobalRaceVectors, AgreeWithSingleGranules) {
  const uint32_t me = BlockStamp::make(kClock, 4);
  std::vector<uint32_t> stamps = {0, kFloor, kFloor + 1, me, ~0u};
  for (uint32_t block : {0u, 4u, 5u, BlockStamp::kBlock}) {
    for (uint32_t clock : {kClock - 1, kClock, kClock + 1}) {
      stamps.push_back(clock << BlockStamp::kClockShift | block);
      stamps.push_back(clock << BlockStamp::kClockShift | BlockStamp::kStrong | block);
    }
  }
  for (size_t k = 0; k < stamps.size(); ++k) {
    for (size_t j = 0; j < stamps.size(); ++j) {
      uint32_t w4[4], r4[4], w1[4], r1[4];
      for (size_t g = 0; g < 4; ++g) {
        w4[g] = w1[g] = stamps[(k + g) % stamps.size()];
        r4[g] = r1[g] = stamps[(j + 3 * g) % stamps.size()];
      }
      bool any = false;
      for (size_t g = 0; g < 4; ++g) any |= global_read_one(&w1[g], &r1[g], me, kFloor);
      ASSERT_EQ(global_read_four(w4, r4, me, kFloor), any);
      for (size_t g = 0; g < 4; ++g) ASSERT_EQ(r4[g], r1[g]) << k << " " << j << " " << g;
      any = false;
      for (size_t g = 0; g < 4; ++g) any |= global_write_one(&w1[g], &r1[g], me, kFloor);
      ASSERT_EQ(global_write_four(w4, r4, me, kFloor), any);
    }
  }
}

}  // namespace
}  // namespace kv::simt
