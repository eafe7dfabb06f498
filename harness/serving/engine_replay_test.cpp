// Traces through engines that own their cache: a sound one passes, wrong ones are found.
#include "harness/serving/engine_replay.h"

#include <gtest/gtest.h>

#include "harness/history/testing/attending_engine.h"
#include "harness/serving/fork_or_encode.h"

namespace kv {
namespace {

std::vector<TraceRequest> chat_trace() {
  std::vector<TraceRequest> trace;
  for (uint64_t i = 0; i < 12; ++i) {
    trace.push_back({.arrival_ns = i * 7,
                     .prompt_tokens = 520 + 31 * i % 400,
                     .output_tokens = 1 + i * 5 % 9,
                     .blocks = {i % 3, 100 + i % 5}});
  }
  return trace;
}

// On an engine with attention that is wrong in this way.
ReplayResult replay(Wrong wrong, const EngineReplayOptions& options) {
  const auto trace = chat_trace();
  const auto made = EngineReplay::create(trace, options);
  EXPECT_TRUE(made.ok()) << made.error().message;
  AttendingEngine engine(made->history_case(), wrong);
  return made->run(engine, {}, {});
}

// On one without, of which no row is asked for attention.
ReplayResult replay(Fault fault, EngineReplayOptions options) {
  options.sample_one_in = 1'000'000'000;
  const auto trace = chat_trace();
  const auto made = EngineReplay::create(trace, options);
  EXPECT_TRUE(made.ok()) << made.error().message;
  PlainEngine engine(made->history_case(), fault);
  ReplayResult result = made->run(engine, {}, {});
  EXPECT_EQ(result.rows_sampled, 0u);
  return result;
}

TEST(EngineReplay, ServesTheTraceAtItsLengths) {
  const EngineReplayOptions options{
      .batch_slots = 3, .chunk_tokens = 100, .page_slots = 64, .step_ns = 10, .sample_one_in = 4};
  const ReplayResult result = replay(Wrong::kNothing, options);
  ASSERT_FALSE(result.finding) << result.finding->message;
  uint64_t slots = 0;
  for (const TraceRequest& r : chat_trace()) slots += r.prompt_tokens + r.output_tokens - 1;
  EXPECT_EQ(result.appended_slots + result.hit_slots, slots);
  EXPECT_EQ(result.served.refused, 0u);
  EXPECT_EQ(result.served.batch_peak, 3u);
  EXPECT_EQ(result.served.requests[11].arrived.step, 8u);
  EXPECT_GE(result.stats.slots_read, slots);  // each slot by its bytes
  EXPECT_GT(result.rows_sampled, result.rows / 8);
  EXPECT_LT(result.rows_sampled, result.rows / 2);
  EXPECT_EQ(result.stats.values.rows, result.rows_sampled);
}

TEST(EngineReplay, FindsWhatIsWrong) {
  const EngineReplayOptions options{.batch_slots = 3, .chunk_tokens = 100, .page_slots = 64};
  for (const Fault fault : {Fault::kFreeTwice, Fault::kWriteOtherToken, Fault::kPublishOtherTokens,
                            Fault::kValueIsKey, Fault::kNoRoom}) {
    EXPECT_TRUE(replay(fault, options).finding) << static_cast<int>(fault);
  }
  const EngineReplayOptions sampled{
      .batch_slots = 3, .chunk_tokens = 100, .page_slots = 64, .sample_one_in = 4};
  // Not the scale: a key that is not selected weighs nothing with another one, too.
  for (const Wrong wrong : {Wrong::kNewestKey, Wrong::kOtherRow, Wrong::kUnwritten}) {
    const ReplayResult result = replay(wrong, sampled);
    ASSERT_TRUE(result.finding) << static_cast<int>(wrong);
    EXPECT_EQ(result.finding->check, CheckClass::kValues) << result.finding->message;
  }
}

TEST(EngineReplay, WhatNeverFitsIsRefused) {
  const ReplayResult result = replay(
      Fault::kNone, {.batch_slots = 3, .chunk_tokens = 100, .page_slots = 64, .pool_pages = 10});
  ASSERT_FALSE(result.finding) << result.finding->message;
  EXPECT_GT(result.served.refused, 0u);
  EXPECT_LT(result.served.refused, 12u);
}

TEST(ForkOrEncode, ForkingProjectsThePromptOnce) {
  const ForkOptions options{
      .completions = 3, .prompt_tokens = 70, .output_tokens = 6, .chunk_tokens = 32};
  const Case c = fork_case(options);
  AttendingEngine one(c, Wrong::kNothing), other(c, Wrong::kNothing);
  const Completions forked = complete_forked(c, options, one);
  const Completions encoded = complete_encoded(c, options, other);
  ASSERT_FALSE(forked.finding) << forked.finding->message;
  ASSERT_FALSE(encoded.finding) << encoded.finding->message;
  EXPECT_EQ(forked.projected, 70u + 3 * 5);
  EXPECT_EQ(encoded.projected, 3u * 75);
  EXPECT_EQ(forked.stored, encoded.stored);
  EXPECT_EQ(forked.outputs, encoded.outputs);
  EXPECT_EQ(forked.outputs.size(), 5u);
  PlainEngine wrong(c, Fault::kWriteSharedTail);  // found before anything is attended to
  const Completions shared = complete_forked(c, options, wrong);
  ASSERT_TRUE(shared.finding);
  EXPECT_NE(shared.finding->check, CheckClass::kValues) << shared.finding->message;
}

}  // namespace
}  // namespace kv
