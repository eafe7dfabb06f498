// Hand-written matrices: one line for each query row, one character for each slot.
#include "reference/visible.h"

#include <gtest/gtest.h>

#include <string>

namespace kv::reference {
namespace {

using Rows = std::vector<std::string>;

struct Setup {
  Causal causal = Causal::kNone;
  int64_t left = -1, right = -1;
  uint32_t queries = 1;
  std::string slots;  // 'x' real, '-' PAD
  uint32_t append_slots = 0;
  std::vector<int32_t> parents = {};
};

Rows matrix(const Setup& s) {
  std::vector<uint8_t> real;
  for (char c : s.slots) real.push_back(c == 'x');
  const MaskGeometry geometry{.causal = s.causal,
                              .window_left = s.left,
                              .window_right = s.right,
                              .queries = s.queries,
                              .real = real,
                              .append_slots = s.append_slots,
                              .tree_parents = s.parents};
  Rows rows;
  for (uint32_t i = 0; i < s.queries; ++i) {
    std::string row;
    for (uint8_t v : visible_keys(geometry, i)) row += v ? '1' : '.';
    rows.push_back(row);
  }
  return rows;
}

TEST(Visible, NoMaskShowsEverything) {
  EXPECT_EQ(matrix({.queries = 2, .slots = "xxx"}), (Rows{"111", "111"}));
}

TEST(Visible, CausalBottomRight) {
  EXPECT_EQ(matrix({.causal = Causal::kBottomRight, .queries = 3, .slots = "xxxxx"}),
            (Rows{"111..", "1111.", "11111"}));
}

TEST(Visible, CausalBottomRightWithMoreQueriesThanKeysHasEmptyFirstRows) {
  EXPECT_EQ(matrix({.causal = Causal::kBottomRight, .queries = 4, .slots = "xx"}),
            (Rows{"..", "..", "1.", "11"}));
}

TEST(Visible, CausalTopLeft) {
  EXPECT_EQ(matrix({.causal = Causal::kTopLeft, .queries = 3, .slots = "xxxxx"}),
            (Rows{"1....", "11...", "111.."}));
  EXPECT_EQ(matrix({.causal = Causal::kTopLeft, .queries = 4, .slots = "xx"}),
            (Rows{"1.", "11", "11", "11"}));
}

TEST(Visible, WindowIsInclusiveOnBothSides) {
  EXPECT_EQ(matrix({.left = 1, .right = 1, .queries = 5, .slots = "xxxxx"}),
            (Rows{"11...", "111..", ".111.", "..111", "...11"}));
  EXPECT_EQ(matrix({.left = 0, .right = 0, .queries = 3, .slots = "xxx"}),
            (Rows{"1..", ".1.", "..1"}));
}

TEST(Visible, WindowAnchorsAtTheCausalLimit) {
  EXPECT_EQ(matrix({.causal = Causal::kBottomRight, .left = 2, .queries = 3, .slots = "xxxxxx"}),
            (Rows{".111..", "..111.", "...111"}));
  EXPECT_EQ(matrix({.causal = Causal::kTopLeft, .left = 1, .queries = 3, .slots = "xxxxxx"}),
            (Rows{"1.....", "11....", ".11..."}));
}

TEST(Visible, CausalLimitBeatsTheRightWindow) {
  EXPECT_EQ(matrix({.causal = Causal::kBottomRight, .right = 5, .queries = 2, .slots = "xxx"}),
            (Rows{"11.", "111"}));
}

TEST(Visible, WindowWithoutCausalAnchorsBottomRight) {
  EXPECT_EQ(matrix({.left = 0, .queries = 2, .slots = "xxxx"}), (Rows{"..11", "...1"}));
}

TEST(Visible, PaddingLeftRightAndHoles) {
  EXPECT_EQ(matrix({.causal = Causal::kBottomRight, .queries = 3, .slots = "--xx-x-"}),
            (Rows{"..11...", "..11.1.", "..11.1."}));
}

TEST(Visible, WindowCountsSlotsNotTokens) {
  EXPECT_EQ(matrix({.causal = Causal::kBottomRight, .left = 2, .queries = 1, .slots = "xx--x"}),
            (Rows{"....1"}));
}

TEST(Visible, TreeShowsAncestorsAndTheWholePrefix) {
  //        0
  //       / \.
  //      1   2
  //      |
  //      3
  EXPECT_EQ(matrix({.causal = Causal::kBottomRight,
                    .queries = 4,
                    .slots = "xxxxxx",
                    .append_slots = 4,
                    .parents = {-1, 0, 0, 1}}),
            (Rows{"111...", "1111..", "111.1.", "1111.1"}));
}

TEST(Visible, TwoRootsDoNotSeeEachOther) {
  EXPECT_EQ(matrix({.causal = Causal::kBottomRight,
                    .queries = 3,
                    .slots = "xxxx",
                    .append_slots = 3,
                    .parents = {-1, -1, 0}}),
            (Rows{"11..", "1.1.", "11.1"}));
}

TEST(Visible, TreeNodesAreCountedOverRealTokens) {
  // Slots: one old token, then PAD, node 0, node 1 (child of the root, not of node 0).
  EXPECT_EQ(matrix({.causal = Causal::kBottomRight,
                    .queries = 3,
                    .slots = "x-xx",
                    .append_slots = 3,
                    .parents = {-1, -1}}),
            (Rows{"1...", "1.1.", "1..1"}));
}

TEST(Visible, OlderRowsAreNotRestrictedByTheTree) {
  EXPECT_EQ(matrix({.causal = Causal::kNone,
                    .queries = 2,
                    .slots = "xxx",
                    .append_slots = 1,
                    .parents = {-1}}),
            (Rows{"111", "111"}));
}

TEST(Visible, EmptyCacheGivesEmptySets) {
  EXPECT_EQ(matrix({.causal = Causal::kBottomRight, .queries = 2, .slots = ""}), (Rows{"", ""}));
}

}  // namespace
}  // namespace kv::reference
