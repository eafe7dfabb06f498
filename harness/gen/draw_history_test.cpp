#include "harness/gen/draw_history.h"

#include <gtest/gtest.h>

#include <array>

#include "harness/case/json.h"
#include "harness/case/validate.h"

namespace kv {
namespace {

constexpr size_t kKinds = std::variant_size_v<Op>;

TEST(DrawHistory, IsLawfulBoundedAndReadsBack) {
  for (uint64_t i = 0; i < 500; ++i) {
    PhiloxSource choices(1, i);
    const Case c = draw_history(choices, {.attends = i % 2 == 0});
    ASSERT_TRUE(check_case(c).ok()) << i << ": " << check_case(c).error().message;
    ASSERT_GE(c.ops.size(), 1u);
    ASSERT_LE(c.ops.size(), 201u);
    ASSERT_GE(c.pool.page_count, 7u);
    ASSERT_LE(c.pool.page_count, 64u);
    if (i % 25 != 0) continue;
    const auto back = parse_case(case_to_json(c), "c");
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, c);
  }
}

TEST(DrawHistory, AnyChoicesWill) {
  for (const std::vector<uint64_t>& choices :
       {std::vector<uint64_t>{}, std::vector<uint64_t>(3000, ~uint64_t{0}),
        std::vector<uint64_t>(3000, 7)}) {
    ListSource source(choices);
    const Case c = draw_history(source, {});
    EXPECT_TRUE(check_case(c).ok());
  }
}

// A campaign that never met a pair of operations says nothing about it.
TEST(DrawHistory, MeetsEveryOperationAndEveryPairOfAdjacentOnes) {
  std::array<std::array<uint64_t, kKinds>, kKinds> adjacent = {};
  for (uint64_t i = 0; i < 3000; ++i) {
    PhiloxSource choices(2, i);
    const Case c = draw_history(choices, {});
    for (size_t k = 1; k < c.ops.size(); ++k) {
      ++adjacent[c.ops[k - 1].index()][c.ops[k].index()];
    }
  }
  for (size_t a = 0; a < kKinds; ++a) {
    for (size_t b = 0; b < kKinds; ++b) EXPECT_GT(adjacent[a][b], 0u) << a << " then " << b;
  }
}

}  // namespace
}  // namespace kv
