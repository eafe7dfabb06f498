#include "harness/serving/prefix_hits.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace kv {
namespace {

TraceRequest request(uint64_t prompt, std::vector<uint64_t> blocks) {
  return {.prompt_tokens = prompt, .output_tokens = 1, .blocks = std::move(blocks)};
}

// Two full blocks and a partial one, the same again, and one that leaves after the first block.
const std::vector<TraceRequest> kSmall = {request(1100, {7, 8, 9}), request(1100, {7, 8, 9}),
                                          request(1024, {7, 5})};

TEST(PrefixHits, TheIdealCountsThePartialLastBlockToo) {
  const IdealHits ideal = ideal_hits(kSmall);
  EXPECT_EQ(ideal.blocks, 8u);
  EXPECT_EQ(ideal.hits, 3u + 1u);
  EXPECT_EQ(ideal.partial_hits, 1u);
  EXPECT_EQ(ideal.distinct_blocks, 4u);
}

TEST(PrefixHits, TheManagerHitsFullPagesOnly) {
  const auto hits = serve_prefixes(kSmall, {});
  ASSERT_TRUE(hits.ok()) << hits.error().message;
  EXPECT_EQ(hits->hit_pages, 2u + 1u);
  EXPECT_EQ(hits->prompt_pages, 8u);
  EXPECT_EQ(hits->published_pages, 3u);  // 7, 8 and 5
  EXPECT_EQ(hits->evicted_pages, 0u);
  const auto halves = serve_prefixes(kSmall, {.page_slots = 256});
  ASSERT_TRUE(halves.ok());
  EXPECT_EQ(halves->hit_pages, 4u + 2u);
}

TEST(PrefixHits, ASmallPoolForgetsAndATinyOneRefuses) {
  const std::vector<TraceRequest> trace = {request(1024, {1, 2}), request(1024, {3, 4}),
                                           request(1024, {1, 2})};
  EXPECT_EQ(serve_prefixes(trace, {.pool_pages = 4})->hit_pages, 2u);
  const auto small = serve_prefixes(trace, {.pool_pages = 2});
  EXPECT_EQ(small->hit_pages, 0u);
  EXPECT_EQ(small->evicted_pages, 4u);
  EXPECT_EQ(serve_prefixes(trace, {.pool_pages = 1})->refused, 3u);
}

TEST(PrefixHits, WhatIsTooLargeIsBadInput) {
  EXPECT_FALSE(serve_prefixes(kSmall, {.pool_pages = uint64_t{1} << 40}).ok());
  EXPECT_FALSE(serve_prefixes(kSmall, {.pool_pages = 8, .page_slots = 500}).ok());
}

TEST(PrefixHits, TheMooncakeTraceHitsAsItsIdsSay) {
  const std::string path = KV_SOURCE_DIR "/../shared/traces/mooncake_conversation.jsonl";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the public traces are not here";
  const auto trace = read_trace(path);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const IdealHits ideal = ideal_hits(*trace);
  EXPECT_EQ(trace->size(), 12'031u);
  EXPECT_EQ(ideal.blocks, 288'500u);
  EXPECT_EQ(ideal.hits, 105'710u);
  EXPECT_EQ(ideal.partial_hits, 118u);
  const auto hits = serve_prefixes(*trace, {});
  ASSERT_TRUE(hits.ok()) << hits.error().message;
  EXPECT_EQ(hits->prompt_pages, 288'500u);
  EXPECT_EQ(hits->hit_pages, 105'592u);
  EXPECT_EQ(hits->evicted_pages, 0u);
}

}  // namespace
}  // namespace kv
