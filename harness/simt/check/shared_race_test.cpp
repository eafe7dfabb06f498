#include "harness/simt/check/shared_race.h"

#include <gtest/gtest.h>

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
    const bool suspicious = read_one(&writer_, &reader_, me, warp_[warp].floor);
    return suspicious && warp_[warp].conflicts(writer, me);
  }
  bool write(uint32_t warp, uint32_t lane) {
    const uint32_t me = warp_[warp].base + lane;
    if (!write_one(&writer_, &reader_, me, warp_[warp].floor)) return false;
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
TEST_F(SharedRace, LanesOfAWarpAfterASyncAreSilent) {
  EXPECT_FALSE(write(0, 0));
  warp_[0].sync_lanes();
  EXPECT_FALSE(read(0, 1));
  EXPECT_TRUE(read(1, 1)) << "the sync of a warp orders nothing for others";
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
        const bool four = read_four(w4, r4, mine, warp.floor);
        bool any = false;
        for (size_t g = 0; g < 4; ++g) any |= read_one(&w1[g], &r1[g], mine[g], warp.floor);
        ASSERT_EQ(four, any);
        for (size_t g = 0; g < 4; ++g) ASSERT_EQ(r4[g], r1[g]) << k << " " << j << " " << g;
        const bool blocked = write_four(w4, r4, mine, warp.floor);
        any = false;
        for (size_t g = 0; g < 4; ++g) any |= write_one(&w1[g], &r1[g], mine[g], warp.floor);
        ASSERT_EQ(blocked, any);
        for (size_t g = 0; g < 4 && !blocked; ++g) ASSERT_EQ(w4[g], w1[g]);
      }
    }
  }
}

}  // namespace
}  // namespace kv::simt
