#include "harness/simt/check/shared_race.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace kv::simt {
namespace {

/// Two warps and one granule. Each access says whether it races with what came before.
class SharedRace : public ::testing::Test {
 protected:
  void SetUp() override {
    for (uint32_t k = 0; k < 2; ++k) warp_[k].start(k, clock_);
  }
  bool read(uint32_t warp, uint32_t lane) {
    const uint32_t me = warp_[warp].base + lane, writer = writer_;
    const bool suspicious = read_one(&writer_, &reader_, me, warp_[warp].ordered());
    return suspicious && warp_[warp].conflicts(writer, me);
  }
  bool write(uint32_t warp, uint32_t lane) {
    const uint32_t me = warp_[warp].base + lane;
    if (!write_one(&writer_, &reader_, me, warp_[warp].ordered())) return false;
    const bool bad = warp_[warp].conflicts(writer_, me) || warp_[warp].conflicts(reader_, me);
    writer_ = me;
    return bad;
  }
  void barrier() {
    uint32_t joined[32] = {};
    for (WarpClock& w : warp_) w.publish(joined);
    ++clock_;
    for (uint32_t& seen : joined) seen = std::max(seen, clock_ - 1);
    for (WarpClock& w : warp_) w.join(joined, clock_);
  }
  void raise_flag() {
    uint32_t joined[32] = {};
    warp_[0].publish_fenced(joined);
    warp_[1].absorb(joined);
  }

  uint32_t clock_ = 1;
  WarpClock warp_[2];
  uint32_t writer_ = 0, reader_ = 0;
};

TEST_F(SharedRace, ReadOfAnotherWarpsWrite) {
  EXPECT_FALSE(write(0, 3));
  EXPECT_TRUE(read(1, 3));
}
TEST_F(SharedRace, ReadAfterABarrierIsSilent) {
  EXPECT_FALSE(write(0, 3));
  barrier();
  EXPECT_FALSE(read(1, 3));
}
TEST_F(SharedRace, WriteOverAnotherWarpsRead) {
  EXPECT_FALSE(read(0, 3));
  EXPECT_TRUE(write(1, 4));
}
TEST_F(SharedRace, WriteOverAReadAfterABarrierIsSilent) {
  EXPECT_FALSE(read(0, 3));
  EXPECT_FALSE(read(1, 3));
  barrier();
  EXPECT_FALSE(write(1, 4));
}
TEST_F(SharedRace, WriteOverSeveralReaders) {
  EXPECT_FALSE(read(0, 3));
  EXPECT_FALSE(read(1, 3));
  EXPECT_TRUE(write(1, 3)) << "warp 0 has read too";
}
TEST_F(SharedRace, TwoWrites) {
  EXPECT_FALSE(write(0, 0));
  EXPECT_TRUE(write(1, 0));
}
TEST_F(SharedRace, LanesOfAWarpNeedASync) {
  EXPECT_FALSE(write(0, 0));
  EXPECT_TRUE(read(0, 1));
}
/// A strong write by warp 0, seen by warp 1.
TEST_F(SharedRace, AFlagAfterAFenceOrders) {
  EXPECT_FALSE(write(0, 3));
  warp_[0].fence();
  raise_flag();
  EXPECT_FALSE(read(1, 3));
}
TEST_F(SharedRace, AFlagWithoutAFenceOrdersNothing) {
  EXPECT_FALSE(write(0, 3));
  raise_flag();
  EXPECT_TRUE(read(1, 3));
}
TEST_F(SharedRace, WhatIsWrittenAfterTheFenceIsNotBehindTheFlag) {
  warp_[0].fence();
  EXPECT_FALSE(write(0, 3));
  raise_flag();
  EXPECT_TRUE(read(1, 3));
}
/// As where the last warp to count itself sets the counter back.
TEST_F(SharedRace, AStrongWriteBehindAFenceIsPublishedToo) {
  warp_[0].fence();
  writer_ = warp_[0].strong_base() | WarpClock::kStrong;
  raise_flag();
  EXPECT_FALSE(write(1, 3));
}
TEST_F(SharedRace, AStrongWriteWithoutAFenceIsNot) {
  writer_ = warp_[0].strong_base() | WarpClock::kStrong;
  raise_flag();
  EXPECT_TRUE(write(1, 3));
}
TEST_F(SharedRace, AFenceIsNoSyncOfLanes) {
  EXPECT_FALSE(write(0, 0));
  warp_[0].fence();
  EXPECT_TRUE(read(0, 1));
}
TEST_F(SharedRace, AReaderBeforeAFenceIsNotForgotten) {
  EXPECT_FALSE(read(0, 0));
  warp_[0].fence();
  EXPECT_FALSE(read(0, 1));
  EXPECT_TRUE(write(0, 1)) << "lane 0 has read and not met lane 1";
}
TEST_F(SharedRace, AFlagOrdersTheLanesOfItsWarp) {
  EXPECT_FALSE(write(0, 0));
  warp_[0].fence();
  raise_flag();
  EXPECT_FALSE(read(0, 1));
}
/// At a barrier in which warp 1 has no part.
TEST_F(SharedRace, ABarrierIsAFence) {
  EXPECT_FALSE(write(0, 3));
  uint32_t alone[32] = {};
  warp_[0].publish(alone);
  warp_[0].join(alone, ++clock_);
  raise_flag();
  EXPECT_FALSE(read(1, 3));
}
TEST_F(SharedRace, LanesOfAWarpAfterASyncAreSilent) {
  EXPECT_FALSE(write(0, 0));
  warp_[0].sync_lanes();
  EXPECT_FALSE(read(0, 1));
  EXPECT_TRUE(read(1, 1)) << "the sync of a warp orders nothing for others";
}
TEST_F(SharedRace, LanesThatHaveMetAreSettledAtOnce) {
  // The floor cannot say it: the other warp is behind. Without them conflicts() would be asked.
  uint32_t writers[4], readers[4] = {};
  std::fill(writers, writers + 4, warp_[0].base);
  const auto settled = [&](uint32_t warp) {
    const Stamps mine = all_stamps(warp_[warp].base + 1);
    const Ordered before = warp_[warp].ordered();
    return !read_one(writers, readers, mine[0], before) &&
           !read_four(writers, readers, mine, before) &&
           !write_four(writers, readers, mine, before);
  };
  EXPECT_FALSE(settled(0)) << "the lanes have not met";
  warp_[0].sync_lanes();
  EXPECT_GT(writers[0], warp_[0].floor);
  EXPECT_FALSE(settled(1));
  std::fill(readers, readers + 4, 0);
  EXPECT_TRUE(settled(0));
}
TEST_F(SharedRace, OneLaneNeverRacesWithItself) {
  EXPECT_FALSE(write(0, 5));
  EXPECT_FALSE(read(0, 5));
  EXPECT_FALSE(write(0, 5));
}
TEST_F(SharedRace, TheBlockBeforeIsOrdered) {
  EXPECT_FALSE(write(0, 0));
  for (uint32_t k = 0; k < 2; ++k) warp_[k].start(k, clock_ + 1);
  EXPECT_FALSE(read(1, 1));
  EXPECT_FALSE(write(1, 1));
}
TEST_F(SharedRace, TakingOverWhatAReleaseSawOrders) {
  EXPECT_FALSE(write(0, 0));
  uint32_t released[32] = {};
  warp_[0].publish(released);
  warp_[0].sync_lanes();
  warp_[1].absorb(released);
  EXPECT_FALSE(read(1, 0));
}

/// Four granules at once say and store what four single ones do.
TEST(SharedRaceVectors, AgreeWithSingleGranules) {
  WarpClock warp;
  warp.start(2, 9);
  const uint32_t bases[] = {warp.base, warp.base ^ (1u << 6), warp.base - (1u << 13), 0};
  std::vector<uint32_t> stamps;
  for (uint32_t base : bases) {
    for (uint32_t flag : {0u, WarpClock::kWarps, WarpClock::kLanes, WarpClock::kStrong}) {
      for (uint32_t lane : {0u, 1u, 7u}) stamps.push_back((base | flag) + lane);
    }
  }
  const std::array<uint32_t, 4> lanes[] = {{0, 1, 2, 3}, {7, 7, 7, 7}};
  for (size_t k = 0; k < stamps.size(); ++k) {
    for (size_t j = 0; j < stamps.size(); ++j) {
      for (const auto& lane : lanes) {
        uint32_t w4[4], r4[4], w1[4], r1[4];
        Stamps mine;
        for (size_t g = 0; g < 4; ++g) {
          w4[g] = w1[g] = stamps[(k + g) % stamps.size()];
          r4[g] = r1[g] = stamps[(j + 3 * g) % stamps.size()];
          mine[g] = warp.base + lane[g];
        }
        const bool four = read_four(w4, r4, mine, warp.ordered());
        bool any = false;
        for (size_t g = 0; g < 4; ++g) any |= read_one(&w1[g], &r1[g], mine[g], warp.ordered());
        ASSERT_EQ(four, any);
        for (size_t g = 0; g < 4; ++g) ASSERT_EQ(r4[g], r1[g]) << k << " " << j << " " << g;
        const bool blocked = write_four(w4, r4, mine, warp.ordered());
        any = false;
        for (size_t g = 0; g < 4; ++g) any |= write_one(&w1[g], &r1[g], mine[g], warp.ordered());
        ASSERT_EQ(blocked, any);
        for (size_t g = 0; g < 4 && !blocked; ++g) ASSERT_EQ(w4[g], w1[g]);
      }
    }
  }
}

/// A chunk of four granules and two warps, accessed as the executor does: true where the exact
/// check would be asked.
class SharedChunks : public SharedRace {
 protected:
  template <bool kWrite>
  bool whole(uint32_t warp, uint32_t lane) {
    const uint32_t me = warp_[warp].base + lane;
    const Ordered before = warp_[warp].ordered();
    if (!touch_chunk<kWrite>(&chunk_, me, before, oldest_)) return false;
    if (!is_split(chunk_, oldest_)) return true;
    open_chunk(&chunk_, {writers_, readers_, 4}, me, oldest_);
    return kWrite ? write_four(writers_, readers_, all_stamps(me), before)
                  : read_four(writers_, readers_, all_stamps(me), before);
  }
  template <bool kWrite>
  bool part(int granule, uint32_t warp, uint32_t lane) {
    const uint32_t me = warp_[warp].base + lane;
    const Ordered before = warp_[warp].ordered();
    open_chunk(&chunk_, {writers_, readers_, 4}, me, oldest_);
    return kWrite ? write_one(writers_ + granule, readers_ + granule, me, before)
                  : read_one(writers_ + granule, readers_ + granule, me, before);
  }
  void block_barrier() {
    barrier();
    oldest_ = std::min(warp_[0].floor, warp_[1].floor);
  }

  SharedChunk chunk_;
  uint32_t writers_[4] = {}, readers_[4] = {};
  uint32_t oldest_ = warp_[0].floor;
};

// Fails where splitting a chunk forgets who wrote or read all of it.
TEST_F(SharedChunks, PartOfWhatAnotherWarpWrote) {
  EXPECT_FALSE(whole<true>(0, 3));
  EXPECT_TRUE(part<false>(2, 1, 3));
}
TEST_F(SharedChunks, PartOfWhatAnotherWarpRead) {
  EXPECT_FALSE(whole<false>(0, 3));
  EXPECT_TRUE(part<true>(2, 1, 3));
}
// Fails where an access to a whole split chunk looks at the pair only.
TEST_F(SharedChunks, WholeOfWhatAnotherWarpWroteAPartOf) {
  EXPECT_FALSE(part<true>(3, 0, 3));
  EXPECT_TRUE(whole<false>(1, 3));
}
TEST_F(SharedChunks, WholeOfWhatAnotherWarpReadAPartOf) {
  EXPECT_FALSE(part<false>(3, 0, 3));
  EXPECT_TRUE(whole<true>(1, 3));
}
// Fails where one stamp stands for granules of several lanes: a false alarm.
TEST_F(SharedChunks, LanesThatShareAChunkAreSilent) {
  for (uint32_t k = 0; k < 4; ++k) {
    EXPECT_FALSE(part<true>(int(k), k & 1, k));
    EXPECT_FALSE(part<false>(int(k), k & 1, k));
  }
}
// Fails where the mark of a split chunk outlives a barrier of the block.
TEST_F(SharedChunks, ABarrierMakesAChunkWholeAgain) {
  EXPECT_FALSE(part<true>(1, 0, 0));
  EXPECT_TRUE(is_split(chunk_, oldest_));
  block_barrier();
  EXPECT_FALSE(is_split(chunk_, oldest_));
  EXPECT_FALSE(whole<true>(1, 5));
  EXPECT_TRUE(part<true>(0, 0, 0)) << "warp 1 has written all of it since";
}
// Fails where the mark keeps the clock of the first access that split the chunk.
TEST_F(SharedChunks, AChunkStaysSplitUntilTheLastOfItsPartsIsOld) {
  EXPECT_FALSE(part<true>(1, 0, 0));
  const uint32_t first = warp_[0].base | WarpClock::kCodeMask;
  warp_[0].sync_lanes();
  EXPECT_FALSE(part<true>(2, 0, 0));
  oldest_ = first;
  EXPECT_TRUE(whole<true>(1, 0));
}
// Fails where a warp that is ordered after everything hides from others what was not for them.
TEST_F(SharedChunks, AWarpThatKnowsAllLeavesTheOthersTheirStamps) {
  EXPECT_FALSE(part<true>(1, 0, 0));
  uint32_t joined[32];
  for (uint32_t& seen : joined) seen = clock_;
  warp_[1].join(joined, clock_ + 1);
  EXPECT_FALSE(whole<false>(1, 0)) << "it is ordered after the write";
  EXPECT_TRUE(is_split(chunk_, oldest_)) << "other warps are not";
}

}  // namespace
}  // namespace kv::simt
