#include "harness/serving/pool_picture.h"

#include <gtest/gtest.h>

namespace kv {
namespace {

TEST(PoolPicture, DrawsWhatTheMomentsSay) {
  std::vector<PoolMoment> moments;
  for (uint64_t step = 1; step <= 5000; ++step) {
    moments.push_back({.step = step,
                       .requests = 1,
                       .held_pages = step == 2500 ? 77u : 3u,
                       .held_slots = 12,
                       .table_pages = 3,
                       .returned_pages = step,
                       .contiguous = {.free = 10, .longest = 5}});
  }
  const std::string svg = pool_svg(moments, {.title = "a <pool>", .page_slots = 8});
  EXPECT_NE(svg.find(">a &lt;pool&gt;<"), std::string::npos);
  EXPECT_NE(svg.find(">77 pages<"), std::string::npos);      // one step of 5000 is not lost
  EXPECT_NE(svg.find(">5000 pages<"), std::string::npos);    // all returned in the end
  EXPECT_NE(svg.find(">500 permille<"), std::string::npos);  // 12 of 24 slots; 5 of 10 pages
  EXPECT_EQ(svg, pool_svg(moments, {.title = "a <pool>", .page_slots = 8}));
  EXPECT_LT(svg.size(), 60'000u);
  EXPECT_NE(pool_svg({}, {}).find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace kv
