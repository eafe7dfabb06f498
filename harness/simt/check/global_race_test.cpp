#include "harness/simt/check/global_race.h"

#include <gtest/gtest.h>

#include <type_traits>
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
  for (uint32_t block : {0u, 4u, 5u, BlockStamp::kSeveral | 4u, BlockStamp::kSeveral | 5u}) {
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

/// A chunk of four granules and the blocks of a launch, accessed as the executor does.
struct Chunk {
  ChunkStamps stamps;
  uint32_t writers[4] = {1, 2, 3, 4}, readers[4] = {5, 6, 7, 8};  // of some older launch
  template <bool kWrite>
  bool whole(uint64_t block, uint32_t clock = kClock) {
    const uint32_t me = BlockStamp::make(clock, block), floor = BlockStamp::floor(clock - 1);
    if (!is_split(stamps, floor)) return touch_chunk<kWrite>(&stamps, me, floor);
    return kWrite ? global_write_four(writers, readers, me, floor)
                  : global_read_four(writers, readers, me, floor);
  }
  template <bool kWrite>
  bool part(int granule, uint64_t block, uint32_t clock = kClock) {
    const uint32_t me = BlockStamp::make(clock, block), floor = BlockStamp::floor(clock - 1);
    if (!is_split(stamps, floor)) split_chunk(&stamps, writers, readers, 4, me, floor);
    return kWrite ? global_write_one(writers + granule, readers + granule, me, floor)
                  : global_read_one(writers + granule, readers + granule, me, floor);
  }
};

// Fails where splitting a chunk forgets who wrote or read all of it.
TEST(GlobalRaceChunks, PartOfWhatAnotherBlockTouchedAsAWhole) {
  Chunk written, read;
  EXPECT_FALSE(written.whole<true>(0));
  EXPECT_TRUE(written.part<false>(2, 1));
  EXPECT_FALSE(read.whole<false>(0));
  EXPECT_TRUE(read.part<true>(2, 1));
}
// Fails where an access to a whole split chunk looks at the pair only.
TEST(GlobalRaceChunks, WholeOfWhatAnotherBlockTouchedAPartOf) {
  Chunk written, read;
  EXPECT_FALSE(written.part<true>(3, 0));
  EXPECT_TRUE(written.whole<false>(1));
  EXPECT_FALSE(read.part<false>(3, 0));
  EXPECT_TRUE(read.whole<true>(1));
}
// Fails where one stamp stands for granules of several blocks: a false alarm.
TEST(GlobalRaceChunks, BlocksThatShareAChunkAreSilent) {
  Chunk c;
  for (int block = 0; block < 4; ++block) {
    EXPECT_FALSE(c.part<true>(block, uint64_t(block)));
    EXPECT_FALSE(c.part<false>(block, uint64_t(block)));
  }
}
// Fails where the mark of a split chunk outlives its launch, or old stamps come back with it.
TEST(GlobalRaceChunks, TheLaunchBeforeIsOrdered) {
  Chunk c;
  EXPECT_FALSE(c.part<true>(0, 0));
  EXPECT_FALSE(is_split(c.stamps, BlockStamp::floor(kClock)));
  EXPECT_FALSE(c.whole<true>(1, kClock + 1));
  EXPECT_FALSE(c.part<true>(1, 1, kClock + 1));
  EXPECT_FALSE(c.part<true>(0, 1, kClock + 2));
}

// Fails where the quick path settles what granules would not, or leaves other stamps than they do.
TEST(GlobalRaceChunks, AgreeWithGranules) {
  const uint32_t me = BlockStamp::make(kClock, 4);
  std::vector<uint32_t> stamps = {0, kFloor, me};
  for (uint32_t block : {0u, 4u, 5u}) {
    for (uint32_t clock : {kClock - 1, kClock, kClock + 1}) {
      stamps.push_back(BlockStamp::make(clock, block));
    }
  }
  std::vector<uint32_t> readers = stamps;
  readers.push_back(BlockStamp::make(kClock, 4) | BlockStamp::kSeveral);
  readers.push_back(BlockStamp::make(kClock, 5) | BlockStamp::kSeveral);
  const size_t count = stamps.size(), all = count * readers.size();
  const auto chunk_of = [&](size_t k) {
    return ChunkStamps{stamps[k % count], readers[k / count % readers.size()]};
  };
  const auto agree = [&](auto write, size_t k, size_t j) {
    constexpr bool kWrite = decltype(write)::value;
    ChunkStamps one[2] = {chunk_of(k), chunk_of(j)}, two[2] = {one[0], one[1]};
    bool any = false, any_chunk = false;
    ChunkStamps granule[2] = {one[0], one[1]};
    for (int c = 0; c < 2; ++c) {
      any |= kWrite ? global_write_one(&granule[c].writer, &granule[c].reader, me, kFloor)
                    : global_read_one(&granule[c].writer, &granule[c].reader, me, kFloor);
      any_chunk |= touch_chunk<kWrite>(one + c, me, kFloor);
    }
    ASSERT_EQ(any_chunk, any) << k << " " << j;
    ASSERT_EQ(touch_two_chunks<kWrite>(two, me, kFloor), any) << k << " " << j;
    for (int c = 0; c < 2 && !any; ++c) {
      for (const ChunkStamps& other : {one[c], two[c]}) {
        ASSERT_EQ(other.writer, granule[c].writer) << k << " " << j;
        ASSERT_EQ(other.reader, granule[c].reader) << k << " " << j;
      }
    }
  };
  for (size_t k = 0; k < all; ++k) {
    for (size_t j = 0; j < all; ++j) {
      agree(std::true_type(), k, j);
      agree(std::false_type(), k, j);
    }
  }
}

}  // namespace
}  // namespace kv::simt
