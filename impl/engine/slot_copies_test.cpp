// Which copies may be one launch: those that no other one of it disturbs.
#include "impl/engine/slot_copies.h"

#include <gtest/gtest.h>

#include "impl/kernels/copy_slots.h"

namespace kvattn {
namespace {

SlotCopy copy_of(int32_t from, int32_t to, int32_t slots = 16) {
  return {.group = Group{0}, .from = Page{from}, .to = Page{to}, .slots = slots};
}

TEST(SlotCopies, IndependentOnesAreOneLaunch) {
  const std::vector<SlotCopy> beams = {copy_of(1, 9), copy_of(1, 10), copy_of(2, 11)};
  EXPECT_EQ(independent_copies(beams), 3u);
  EXPECT_EQ(independent_copies({}), 0u);
}

TEST(SlotCopies, ALaunchEndsWhereOneReadsWhatAnotherWrites) {
  EXPECT_EQ(independent_copies(std::vector{copy_of(1, 2), copy_of(2, 3), copy_of(4, 5)}), 1u);
}

TEST(SlotCopies, ALaunchEndsWhereOneWritesWhatAnotherReadsOrWrites) {
  EXPECT_EQ(independent_copies(std::vector{copy_of(1, 2), copy_of(3, 1)}), 1u);
  EXPECT_EQ(independent_copies(std::vector{copy_of(1, 2), copy_of(3, 2)}), 1u);
}

TEST(SlotCopies, OtherSlotsOfAPageDisturbNobody) {
  SlotCopy tail = copy_of(3, 2, 4);
  tail.from_slot = tail.to_slot = 12;
  EXPECT_EQ(independent_copies(std::vector{copy_of(1, 2, 12), tail}), 2u);
  tail.to_slot = 11;
  EXPECT_EQ(independent_copies(std::vector{copy_of(1, 2, 12), tail}), 1u);
}

TEST(SlotCopies, GroupsAndTheListsLengthEndALaunch) {
  SlotCopy other = copy_of(3, 4);
  other.group = Group{1};
  EXPECT_EQ(independent_copies(std::vector{copy_of(1, 2), other}), 1u);
  std::vector<SlotCopy> many;
  for (int32_t i = 0; i < kCopiesMax + 5; ++i) many.push_back(copy_of(0, i + 1));
  EXPECT_EQ(independent_copies(many), static_cast<size_t>(kCopiesMax));
}

}  // namespace
}  // namespace kvattn
