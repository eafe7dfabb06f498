#include "harness/simt/memory/address_space.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "harness/simt/control/kv_simt_control.h"

namespace kv::simt {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class AddressSpaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    space_.reset();
    space_.set_limit(uint64_t{8} << 30);
  }
  void TearDown() override { SetUp(); }

  Extent* allocate(uint64_t bytes) {
    const Result<Extent*> extent = space_.allocate(bytes);
    EXPECT_TRUE(extent.ok());
    return *extent;
  }
  static uint8_t* data(const Extent& extent) { return reinterpret_cast<uint8_t*>(extent.base); }
  /// Pages of a range that have real memory.
  static uint64_t resident_pages(uint64_t address, uint64_t bytes) {
    std::vector<unsigned char> pages((bytes + 4095) / 4096);
    EXPECT_EQ(mincore(reinterpret_cast<void*>(address / 4096 * 4096), bytes, pages.data()), 0);
    uint64_t count = 0;
    for (unsigned char page : pages) count += page & 1;
    return count;
  }

  AddressSpace& space_ = AddressSpace::instance();
};

TEST_F(AddressSpaceTest, FreshMemoryIsPoisonAndUndefined) {
  Extent* const extent = allocate(1000);
  for (uint64_t k = 0; k < 1000; ++k) ASSERT_EQ(data(*extent)[k], layout::kPoison);
  EXPECT_FALSE(space_.defined(*extent, extent->base, 1));
  space_.set_defined(*extent, extent->base + 3, 5, true);
  EXPECT_TRUE(space_.defined(*extent, extent->base + 3, 5));
  EXPECT_FALSE(space_.defined(*extent, extent->base + 2, 6));
  EXPECT_FALSE(space_.defined(*extent, extent->base + 3, 6));
  space_.set_defined(*extent, extent->base, 1000, true);
  EXPECT_TRUE(extent->flags & Extent::kDefined);
  space_.set_defined(*extent, extent->base + 999, 1, false);
  EXPECT_FALSE(space_.defined(*extent, extent->base, 1000));
  EXPECT_TRUE(space_.defined(*extent, extent->base, 999));
}

TEST_F(AddressSpaceTest, FindHoldsExactlyTheBytesOfAnAllocation) {
  Extent* const first = allocate(1000);
  Extent* const second = allocate(24);
  EXPECT_EQ(space_.find(first->base - 1), nullptr);
  EXPECT_EQ(space_.find(first->base), first);
  EXPECT_EQ(space_.find(first->base + 999), first);
  EXPECT_EQ(space_.find(first->base + 1000), nullptr);
  EXPECT_EQ(space_.nearest(first->base + 1000), first);
  EXPECT_EQ(space_.nearest(second->base - 1), second);
  EXPECT_GE(second->base - (first->base + first->bytes), AddressSpace::kRedZone);
  EXPECT_EQ(space_.number(*second), 2u);
}

TEST_F(AddressSpaceTest, FreedMemoryIsKnownAsSuchUntilReset) {
  Extent* const first = allocate(64);
  const uint64_t base = first->base;
  ASSERT_TRUE(space_.free(*first).ok());
  EXPECT_FALSE(space_.free(*first).ok());
  EXPECT_EQ(space_.find(base), first);
  EXPECT_FALSE(first->live());
  EXPECT_NE(allocate(64)->base, base);
  space_.reset();
  EXPECT_EQ(allocate(64)->base, base);
}

TEST_F(AddressSpaceTest, FreedSmallAllocationsGiveTheirPagesBack) {
  constexpr uint64_t kEach = kMiB, kCount = 64;
  uint64_t first = 0, last = 0;
  for (uint64_t k = 0; k < kCount; ++k) {
    Extent* const extent = allocate(kEach);
    space_.set_defined(*extent, extent->base, kEach - 1, true);
    if (first == 0) first = extent->base;
    last = extent->base + kEach;
    ASSERT_TRUE(space_.free(*extent).ok());
  }
  const uint64_t most = 10 * kMiB / 4096;
  EXPECT_LE(resident_pages(first, last - first), most);
  const uint64_t bits = layout::kBitsBase + (first - layout::kHeapBase) / 8;
  EXPECT_LE(resident_pages(bits, (last - first) / 8), most / 8 + kCount);
}

TEST_F(AddressSpaceTest, NeighboursOfFreedMemoryKeepTheirBytesAndBits) {
  std::vector<Extent*> kept;
  for (int k = 0; k < 40; ++k) {
    Extent* const freed = allocate(kMiB - 100);
    kept.push_back(allocate(100));
    std::memset(data(*kept.back()), k, 100);
    space_.set_defined(*kept.back(), kept.back()->base, 99, true);
    ASSERT_TRUE(space_.free(*freed).ok());
  }
  for (int k = 0; k < 40; ++k) {
    const Extent& extent = *kept[size_t(k)];
    for (int b = 0; b < 100; ++b) ASSERT_EQ(data(extent)[b], k);
    EXPECT_TRUE(space_.defined(extent, extent.base, 99));
    EXPECT_FALSE(space_.defined(extent, extent.base, 100));
  }
}

TEST_F(AddressSpaceTest, AfterResetTheNextAllocationIsFreshAgain) {
  Extent* extent = allocate(3 * kMiB);
  std::memset(data(*extent), 7, extent->bytes);
  space_.set_defined(*extent, extent->base, extent->bytes, true);
  space_.reset();
  extent = allocate(3 * kMiB);
  EXPECT_EQ(data(*extent)[extent->bytes - 1], layout::kPoison);
  EXPECT_FALSE(space_.defined(*extent, extent->base + 5, 1));
}

TEST_F(AddressSpaceTest, LargeAllocationsCostWhatIsTouched) {
  space_.set_limit(16 * kMiB);
  Extent* const extent = allocate(1024 * kMiB);
  EXPECT_TRUE(extent->flags & Extent::kSparse);
  const uint64_t before = resident_pages(extent->base, extent->bytes);  // of earlier allocations
  ASSERT_TRUE(space_.touch(*extent, extent->base + 500 * kMiB, 4));
  EXPECT_EQ(data(*extent)[500 * kMiB], layout::kPoison);
  EXPECT_LE(resident_pages(extent->base, extent->bytes) - before, AddressSpace::kGranule / 4096);
  EXPECT_FALSE(space_.touch(*extent, extent->base, 17 * kMiB)) << "beyond the limit";
  EXPECT_FALSE(space_.allocate(3 * kMiB).ok()) << "the limit is used up";
  ASSERT_TRUE(space_.free(*extent).ok());
  EXPECT_TRUE(space_.allocate(3 * kMiB).ok());
}

/// Fails when a granule that was touched is left behind, the last and partial one, say, once other
/// large allocations have been freed.
TEST_F(AddressSpaceTest, ALargeAllocationGivesAllItsPagesBack) {
  const auto resident = [&](uint64_t base, uint64_t bytes) {
    return resident_pages(base, bytes) +
           resident_pages(layout::kBitsBase + (base - layout::kHeapBase) / 8, bytes / 8);
  };
  Extent* const freed = allocate(1024 * kMiB + 100);
  const uint64_t base = freed->base, bytes = freed->bytes;
  const auto touch = [&](Extent& extent) {
    for (const uint64_t at : {uint64_t{0}, 63 * AddressSpace::kGranule, 64 * AddressSpace::kGranule,
                              500 * kMiB, bytes - 4}) {
      ASSERT_TRUE(space_.touch(extent, extent.base + at, 4));
    }
  };
  // Frees more than may stay, in two steps: neither is given back at once.
  const auto free_others = [&] {
    for (int k = 0; k < 2; ++k) {
      Extent* const other = allocate(64 * kMiB);
      ASSERT_TRUE(space_.touch(*other, other->base, 15 * kMiB));
      ASSERT_TRUE(space_.free(*other).ok());
    }
  };
  free_others();
  const uint64_t before = resident(base, bytes);
  touch(*freed);
  EXPECT_GE(resident(base, bytes) - before, 4 * AddressSpace::kGranule / 4096);
  ASSERT_TRUE(space_.free(*freed).ok());
  free_others();
  EXPECT_LE(resident(base, bytes), before);
  Extent* const alive = allocate(1024 * kMiB + 100);
  const uint64_t alive_base = alive->base;
  touch(*alive);
  space_.reset();
  space_.set_limit(uint64_t{8} << 30);
  for (int k = 0; k < 40; ++k) allocate(kMiB);  // of other addresses than the next
  free_others();
  EXPECT_EQ(resident(alive_base + 700 * kMiB, bytes - 700 * kMiB), 0U);
}

/// Fails when pages that a freed allocation left behind are given back after somebody else has
/// come to use them, or are found with what they held.
TEST_F(AddressSpaceTest, PagesThatStayedAreTheNextUsersOwn) {
  for (const uint64_t next_bytes : {1024 * kMiB, 3 * kMiB}) {
    space_.reset();
    Extent* const freed = allocate(1024 * kMiB);
    ASSERT_TRUE(space_.touch(*freed, freed->base, 8 * kMiB));
    std::memset(data(*freed), 7, 8 * kMiB);
    space_.set_defined(*freed, freed->base, 8 * kMiB, true);
    ASSERT_TRUE(space_.free(*freed).ok());
    space_.reset();
    Extent* const next = allocate(next_bytes);
    ASSERT_TRUE(space_.touch(*next, next->base, 2 * kMiB));
    EXPECT_EQ(data(*next)[kMiB], layout::kPoison);
    EXPECT_FALSE(space_.defined(*next, next->base + kMiB, 1));
    data(*next)[kMiB] = 3;
    space_.set_defined(*next, next->base + kMiB, 1, true);
    for (int k = 0; k < 3; ++k) {  // more than may stay
      Extent* const other = allocate(64 * kMiB);
      ASSERT_TRUE(space_.touch(*other, other->base, 15 * kMiB));
      ASSERT_TRUE(space_.free(*other).ok());
    }
    EXPECT_EQ(data(*next)[kMiB], 3);
    EXPECT_TRUE(space_.defined(*next, next->base + kMiB, 1));
  }
}

TEST_F(AddressSpaceTest, RightsAreTheLeastOfTheRange) {
  Extent* const extent = allocate(4096);
  const uint64_t base = extent->base;
  space_.set_access(*extent, base + 100, 200, KV_SIMT_ACCESS_READ);
  space_.set_access(*extent, base + 200, 10, KV_SIMT_ACCESS_NONE);
  EXPECT_EQ(space_.access(*extent, base, 100), KV_SIMT_ACCESS_READ_WRITE);
  EXPECT_EQ(space_.access(*extent, base + 99, 2), KV_SIMT_ACCESS_READ);
  EXPECT_EQ(space_.access(*extent, base + 199, 2), KV_SIMT_ACCESS_NONE);
  EXPECT_EQ(space_.access(*extent, base + 210, 90), KV_SIMT_ACCESS_READ);
  EXPECT_EQ(space_.access(*extent, base + 300, 8), KV_SIMT_ACCESS_READ_WRITE);
  space_.set_access(*extent, base, 4096, KV_SIMT_ACCESS_READ_WRITE);
  EXPECT_EQ(space_.access(*extent, base, 4096), KV_SIMT_ACCESS_READ_WRITE);
  EXPECT_FALSE(extent->flags & (Extent::kNoRead | Extent::kNoWrite));
}

TEST_F(AddressSpaceTest, AWarpIsAllowedWhatEachOfItsLanesIs) {
  Extent* const extent = allocate(4096);
  const uint64_t base = extent->base;
  space_.set_access(*extent, base + 512, 512, KV_SIMT_ACCESS_READ);
  space_.set_access(*extent, base + 2048, 1024, KV_SIMT_ACCESS_NONE);
  for (uint32_t bytes : {1u, 4u, 16u}) {
    for (uint32_t first = 0; first + 31 * 40 + bytes <= 4096; first += bytes) {
      uint32_t offsets[32];
      uint32_t least = KV_SIMT_ACCESS_READ_WRITE;
      bool across = false;  // a lane over a border may be refused: the slow path decides
      for (uint32_t l = 0; l < 32; ++l) {
        offsets[l] = (first + (l * 7 % 32) * 40) / bytes * bytes;
        least &= space_.access(*extent, base + offsets[l], bytes);
        for (uint32_t border : {512u, 1024u, 2048u, 3072u}) {
          across |= offsets[l] < border && border < offsets[l] + bytes;
        }
      }
      for (uint32_t wanted : {uint32_t{KV_SIMT_ACCESS_READ}, 2u}) {
        const bool allowed = space_.allows(*extent, base, offsets, bytes, wanted);
        ASSERT_TRUE(allowed == ((least & wanted) == wanted) || (across && !allowed))
            << first << " " << bytes << " " << wanted;
      }
    }
  }
}

}  // namespace
}  // namespace kv::simt
