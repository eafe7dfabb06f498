#include "harness/trace/serve.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace kv {
namespace {

TraceRequest request(uint64_t prompt, uint64_t output) {
  return {.prompt_tokens = prompt, .output_tokens = output};
}

TEST(Serve, StaticBatchesWaitForTheirLongest) {
  const std::vector<TraceRequest> trace = {request(4, 1), request(4, 9), request(4, 2),
                                           request(4, 3)};
  const Served still = serve(trace, {.batching = Batching::kStatic, .batch_slots = 2});
  EXPECT_EQ(still.steps, 9u + 3u);
  const Served moving = serve(trace, {.batch_slots = 2});
  EXPECT_EQ(moving.steps, 9u);  // 1 + 2 + 3 steps beside the long one
  EXPECT_EQ(moving.requests[2].admitted.step, 1u);
  EXPECT_EQ(moving.requests[3].admitted.step, 3u);
  EXPECT_EQ(moving.row_steps, 15u);
}

TEST(Serve, AChunkedPromptTakesItsStepsAndSamplesOne) {
  const Served served = serve(std::vector{request(10, 3)}, {.chunk_tokens = 4});
  EXPECT_EQ(served.steps, 3u + 2u);
  EXPECT_EQ(served.requests[0].slots, 12u);
  // lengths 4, 8, 10, 11, 12
  EXPECT_EQ(served.requests[0].finished.bytes, 45u);
}

TEST(Serve, TheWorstCaseOfPagesAdmits) {
  // 20 + 13 - 1 = 32 slots: 2 pages of 16.
  const std::vector<TraceRequest> trace(3, request(20, 13));
  const Served served = serve(trace, {.page_slots = 16, .pool_pages = 5});
  EXPECT_EQ(served.batch_peak, 2u);
  EXPECT_EQ(served.pages_peak, 4u);
  EXPECT_EQ(served.requests[2].admitted.step, 13u);
}

TEST(Serve, WhatNeverFitsIsRefusedAndHoldsNobodyBack) {
  const std::vector<TraceRequest> trace = {request(100, 1), request(10, 1)};
  EXPECT_EQ(serve(trace, {.page_slots = 16, .pool_pages = 6}).refused, 1u);
  const Served limited = serve(trace, {.context_limit = 99});
  EXPECT_TRUE(limited.requests[0].refused);
  EXPECT_FALSE(limited.requests[1].refused);
  EXPECT_EQ(limited.steps, 1u);
  EXPECT_EQ(serve(trace, {.context_limit = 100}).refused, 0u);
}

TEST(Serve, AClosedLoopLetsOneInForEachThatEnds) {
  const std::vector<TraceRequest> trace(4, request(4, 5));
  const Served served = serve(trace, {.batch_slots = 1, .concurrency = 2});
  EXPECT_EQ(served.requests[1].arrived.step, 0u);
  EXPECT_EQ(served.requests[2].arrived.step, 5u);
  EXPECT_EQ(served.requests[3].arrived.step, 10u);
  EXPECT_EQ(served.requests[3].admitted.step, 15u);
}

TEST(Serve, RequestsComeWhenTheyWereRecorded) {
  std::vector<TraceRequest> trace(3, request(4, 5));
  trace[1].arrival_ns = 21;   // in the third step of 10
  trace[2].arrival_ns = 995;  // long after all has ended
  const Served one = serve(trace, {.batch_slots = 1, .step_ns = 10});
  EXPECT_EQ(one.requests[1].arrived.step, 3u);
  EXPECT_EQ(one.requests[1].admitted.step, 5u);
  EXPECT_EQ(one.requests[2].arrived.step, 100u);
  EXPECT_EQ(one.requests[2].finished.step, 105u);
  EXPECT_EQ(one.steps, 15u);
  EXPECT_EQ(serve(trace, {.batch_slots = 2, .step_ns = 10}).requests[1].admitted.step, 3u);
  // With one open request the second waits outside, from when it came.
  const Served closed = serve(trace, {.batch_slots = 2, .concurrency = 1, .step_ns = 10});
  EXPECT_EQ(closed.requests[1].arrived.step, 3u);
  EXPECT_EQ(closed.requests[1].admitted.step, 5u);
}

TEST(Serve, PercentilesAreNearestRank) {
  EXPECT_EQ(percentile({}, 50), 0u);
  EXPECT_EQ(percentile({5}, 99), 5u);
  EXPECT_EQ(percentile({4, 1, 3, 2}, 50), 2u);
  EXPECT_EQ(percentile({4, 1, 3, 2}, 99), 4u);
}

TEST(Serve, TheAzureTraceDecodesInTheseSteps) {
  const std::string path = KV_SOURCE_DIR "/../shared/traces/azure_2023_conv.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the public traces are not here";
  auto trace = read_trace(path);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  trace->resize(1000);
  EXPECT_EQ(serve(*trace, {.batching = Batching::kStatic, .batch_slots = 8}).steps, 56'921u);
  EXPECT_EQ(serve(*trace, {.batch_slots = 8}).steps, 30'989u);
}

}  // namespace
}  // namespace kv
