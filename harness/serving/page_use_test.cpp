#include "harness/serving/page_use.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace kv {
namespace {

TEST(PageUse, EachWayReservesItsOwn) {
  // 40 and 20 slots: 3 and 2 pages, 4 and 2 for a buddy, 40 each when contiguous.
  const std::vector<TraceRequest> trace = {{.prompt_tokens = 30, .output_tokens = 11},
                                           {.prompt_tokens = 20, .output_tokens = 1}};
  const auto use = page_use(trace, {});
  ASSERT_TRUE(use.ok()) << use.error().message;
  EXPECT_EQ(use->slots, 60u);
  EXPECT_EQ(use->pages, 5u);
  EXPECT_EQ(use->paged_slots, 80u);
  EXPECT_EQ(use->contiguous_slots, 80u);
  EXPECT_EQ(use->buddy_slots, 96u);
  EXPECT_EQ(fragmentation(use->paged_slots, use->slots), 0.25);
  EXPECT_EQ(page_use(trace, {.with_last_token = true})->slots, 62u);
  EXPECT_FALSE(page_use(trace, {.page_slots = 0}).ok());
  EXPECT_FALSE(page_use(trace, {.page_slots = 12}).ok());
}

TEST(PageUse, TheAzureTraceTakesThesePages) {
  const std::string path = KV_SOURCE_DIR "/../shared/traces/azure_2023_conv.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the public traces are not here";
  auto trace = read_trace(path);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  trace->resize(1000);
  const auto use = page_use(*trace, {});
  EXPECT_EQ(use->pages, 79'254u);
  EXPECT_NEAR(100 * fragmentation(use->paged_slots, use->slots), 0.600, 0.0005);
  const auto with_last = page_use(*trace, {.with_last_token = true});
  EXPECT_EQ(with_last->pages, 79'311u);
  EXPECT_EQ(with_last->slots, 1'261'451u);
  EXPECT_NEAR(100 * fragmentation(with_last->paged_slots, with_last->slots), 0.593, 0.0005);
  EXPECT_GT(use->contiguous_slots, use->buddy_slots);
  EXPECT_GT(use->buddy_slots, use->paged_slots);
}

}  // namespace
}  // namespace kv
