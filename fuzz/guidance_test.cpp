#include "fuzz/guidance.h"

#include <gtest/gtest.h>

#include <array>

namespace kv::fuzzing {
namespace {

using Three = std::array<Relation, 3>;

// Fails when what was met before counts as much as what was not, or the order of relations decides.
TEST(Guidance, ACaseIsWorthLessTheOftenerItsPairsWereMet) {
  constexpr Three known = {{{0, 1}, {1, 2}, {2, 3}}}, turned = {{{2, 3}, {0, 1}, {1, 2}}};
  constexpr Three one_new = {{{0, 1}, {1, 2}, {2, 4}}};
  EXPECT_DOUBLE_EQ(novelty_of(known), 1);
  meet(known);
  EXPECT_DOUBLE_EQ(novelty_of(known), 0.5);
  EXPECT_DOUBLE_EQ(novelty_of(turned), 0.5);
  EXPECT_DOUBLE_EQ(novelty_of(one_new), 2.5 / 3);
  meet(turned);
  EXPECT_DOUBLE_EQ(novelty_of(known), 1.0 / 3);
}

}  // namespace
}  // namespace kv::fuzzing
