#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "harness/case/features.h"
#include "harness/case/timeline.h"
#include "harness/trace/trace.h"

namespace kv {
namespace {

std::vector<TraceRequest> three() {
  return {{0, 1000, 5, {1, 2}}, {0, 3, 1, {3}}, {0, 1100, 0, {1, 2, 4}}};
}

TEST(Schedule, EveryTokenIsAppendedOnceAndTheLastSampledNever) {
  const auto requests = three();
  const auto c = trace_to_case(requests, {.batch_slots = 2});
  ASSERT_TRUE(c.ok()) << c.error().message;
  std::map<uint32_t, uint64_t> appended;
  uint64_t steps = 0, finished = 0;
  for (const Op& op : c->ops) {
    finished += std::holds_alternative<op::Finish>(op);
    const auto* step = std::get_if<op::Step>(&op);
    if (!step) continue;
    ++steps;
    EXPECT_LE(step->rows.size(), 2u);
    for (const auto& row : step->rows) {
      EXPECT_LE(row.append, 512u);
      EXPECT_EQ(row.queries, row.append);
      appended[row.request.value] += row.append;
    }
  }
  EXPECT_EQ(appended, (std::map<uint32_t, uint64_t>{{0, 1004}, {1, 3}, {2, 1100}}));
  EXPECT_EQ(finished, 3u);
  EXPECT_EQ(steps, 6u);  // request 0: 2 chunks and 4 decodes, the others in its company
}

TEST(Schedule, SharedBlocksBecomeSharedPrefixes) {
  const auto requests = three();
  const auto c = trace_to_case(requests, {});
  ASSERT_TRUE(c.ok()) << c.error().message;
  const auto& third = std::get<op::Admit>(c->ops[2]);
  EXPECT_EQ(third.prefix_of, RequestId(0));
  EXPECT_EQ(third.prefix_tokens, 1000u);  // 1,024 tokens of blocks, but the prompt ended before
  EXPECT_FALSE(std::get<op::Admit>(c->ops[1]).prefix_of);
}

// A block id need not say what comes before it: request 1 has block 3 behind another first block.
TEST(Schedule, APrefixIsTheSameBlocksFromTheFirst) {
  const std::vector<TraceRequest> requests = {
      {0, 1024, 2, {1, 2}}, {0, 1024, 2, {9, 3}}, {0, 1024, 2, {1, 3}}};
  const auto c = trace_to_case(requests, {});
  ASSERT_TRUE(c.ok()) << c.error().message;
  EXPECT_FALSE(std::get<op::Admit>(c->ops[1]).prefix_of);
  EXPECT_EQ(std::get<op::Admit>(c->ops[2]).prefix_of, RequestId(0));
  EXPECT_EQ(std::get<op::Admit>(c->ops[2]).prefix_tokens, 512u);
}

TEST(Schedule, ScaleKeepsAtLeastOneToken) {
  const auto requests = three();
  const auto c = trace_to_case(requests, {.scale = 0.01});
  ASSERT_TRUE(c.ok()) << c.error().message;
  EXPECT_EQ(std::get<op::Admit>(c->ops[0]).prompt_tokens, 10u);
  EXPECT_EQ(std::get<op::Admit>(c->ops[1]).prompt_tokens, 1u);
  for (const double scale : {0.0, -1.0, 1e9}) {
    EXPECT_FALSE(trace_to_case(requests, {.scale = scale}).ok());
  }
}

TEST(Schedule, TimelineAcceptsIt) {
  for (const uint32_t batch : {1u, 2u, 8u}) {
    const auto requests = three();
    const auto c = trace_to_case(requests, {.batch_slots = batch});
    ASSERT_TRUE(c.ok()) << c.error().message;
    EXPECT_TRUE(Timeline::create(*c).ok());
  }
}

TEST(Schedule, TheSeedTraceMixesPrefillAndDecode) {
  const auto requests = read_trace(KV_SOURCE_DIR "/corpus/seeds/small_trace.csv");
  ASSERT_TRUE(requests.ok()) << requests.error().message;
  const auto c = trace_to_case(*requests, {.batch_slots = 3});
  ASSERT_TRUE(c.ok()) << c.error().message;
  const FeatureSet met = features_of(*c);
  for (const Feature feature :
       {feature("mixed_batch"), feature("decode"), feature("prefill_whole"), feature("page_reuse"),
        feature("finish"), feature("page_straddle"), feature("gqa")}) {
    EXPECT_TRUE(met.has(feature)) << feature_name(feature);
  }
}

TEST(Schedule, TimelineAcceptsPublicTraces) {
  const std::filesystem::path folder = std::filesystem::path(KV_SOURCE_DIR) / "../shared/traces";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the public traces are not here";
  for (const char* name : {"azure_2023_conv.csv", "mooncake_conversation.jsonl"}) {
    const auto requests = read_trace(folder / name);
    ASSERT_TRUE(requests.ok()) << requests.error().message;
    const auto c = trace_to_case(*requests, {.requests = 100, .scale = 0.2});
    ASSERT_TRUE(c.ok()) << c.error().message;
    const auto timeline = Timeline::create(*c);
    EXPECT_TRUE(timeline.ok()) << name << ": " << timeline.error().message;
  }
}

}  // namespace
}  // namespace kv
