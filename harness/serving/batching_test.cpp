#include "harness/serving/batching.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace kv {
namespace {

void expect_agreement(std::span<const TraceRequest> trace, const ServeOptions& options) {
  const Served counted = serve(trace, options);
  const auto managed = serve_managed(trace, options);
  ASSERT_TRUE(managed.ok()) << managed.error().message;
  const Served& served = managed->served;
  EXPECT_EQ(served.steps, counted.steps);
  EXPECT_EQ(served.refused, counted.refused);
  EXPECT_EQ(served.batch_peak, counted.batch_peak);
  EXPECT_EQ(served.pages_peak, counted.pages_peak);
  EXPECT_EQ(served.row_steps, counted.row_steps);
  for (size_t i = 0; i < trace.size(); ++i) {
    const auto moments = [](const ServedRequest& r) {
      return std::vector<uint64_t>{r.refused,       r.slots,         r.arrived.step,
                                   r.arrived.bytes, r.admitted.step, r.admitted.bytes,
                                   r.finished.step, r.finished.bytes};
    };
    ASSERT_EQ(moments(served.requests[i]), moments(counted.requests[i])) << "request " << i;
  }
}

std::vector<TraceRequest> mixed_trace() {
  std::vector<TraceRequest> trace;
  for (uint64_t i = 0; i < 60; ++i) {
    trace.push_back({.prompt_tokens = 1 + i * 37 % 101, .output_tokens = i * 29 % 43});
  }
  return trace;
}

TEST(Batching, TheManagerServesWhatTheCountSays) {
  const auto trace = mixed_trace();
  for (const Batching batching : {Batching::kStatic, Batching::kContinuous}) {
    for (const uint64_t chunk : {0, 16}) {
      for (const uint64_t pool : {0, 5, 12}) {
        SCOPED_TRACE(testing::Message() << int(batching) << " " << chunk << " " << pool);
        expect_agreement(trace, {.batching = batching,
                                 .batch_slots = 4,
                                 .concurrency = pool,
                                 .chunk_tokens = chunk,
                                 .pool_pages = pool,
                                 .context_limit = 120,
                                 .token_bytes = 3});
      }
    }
  }
}

TEST(Batching, RecordedArrivalsAreKept) {
  auto trace = mixed_trace();
  for (size_t i = 0; i < trace.size(); ++i) trace[i].arrival_ns = i * i * 40;
  for (const uint64_t step_ns : {1, 7, 1000}) {
    for (const uint64_t concurrency : {0, 3}) {
      const ServeOptions options{.batch_slots = 4,
                                 .concurrency = concurrency,
                                 .step_ns = step_ns,
                                 .pool_pages = 12,
                                 .context_limit = 120};
      expect_agreement(trace, options);
      const Served served = serve(trace, options);
      for (size_t i = 0; i < trace.size(); ++i) {
        const ServedRequest& r = served.requests[i];
        ASSERT_EQ(r.arrived.step, (trace[i].arrival_ns + step_ns - 1) / step_ns) << i;
        ASSERT_GE(r.admitted.step, r.arrived.step) << i;
      }
    }
  }
}

TEST(Batching, PagesComeBack) {
  const auto trace = mixed_trace();
  const auto managed = serve_managed(trace, {.batch_slots = 4, .page_slots = 16});
  ASSERT_TRUE(managed.ok()) << managed.error().message;
  uint64_t pages = 0;  // nothing is shared: each page taken is one returned
  for (const TraceRequest& r : trace) {
    pages += (r.prompt_tokens + std::max<uint64_t>(r.output_tokens, 1) - 1 + 15) / 16;
  }
  EXPECT_EQ(managed->returned_pages, pages);
  EXPECT_EQ(managed->without_room, 0u);
  const TraceRequest one{.prompt_tokens = 1024, .output_tokens = 4, .blocks = {1, 2}};
  const auto shared = serve_managed(std::vector{one, one}, {.batch_slots = 2, .page_slots = 512});
  EXPECT_EQ(shared->returned_pages, 4u);  // two shared ones and two of their own
}

TEST(Batching, SharedPrefixesAreHeldOnceAndNeedNoStep) {
  const TraceRequest one{.prompt_tokens = 1024, .output_tokens = 4, .blocks = {1, 2}};
  const auto managed = serve_managed(std::vector{one, one},
                                     {.batch_slots = 1, .chunk_tokens = 256, .page_slots = 512});
  ASSERT_TRUE(managed.ok()) << managed.error().message;
  EXPECT_EQ(managed->hit_pages, 2u);
  EXPECT_EQ(managed->served.requests[0].finished.step, 4u + 3u);
  EXPECT_EQ(managed->served.requests[1].finished.step, 7u + 1u + 3u);
  const auto together = serve_managed(std::vector{one, one}, {.batch_slots = 2, .page_slots = 512});
  EXPECT_EQ(together->moments[0].table_pages, 6u);
  EXPECT_EQ(together->moments[0].held_pages, 4u);
}

TEST(Batching, TheAzureTraceDecodesInTheseSteps) {
  const std::string path = KV_SOURCE_DIR "/../shared/traces/azure_2023_conv.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the public traces are not here";
  auto trace = read_trace(path);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  trace->resize(1000);
  const auto still = serve_managed(*trace, {.batching = Batching::kStatic});
  ASSERT_TRUE(still.ok()) << still.error().message;
  EXPECT_EQ(still->served.steps, 56'921u);
  EXPECT_EQ(serve_managed(*trace, {})->served.steps, 30'989u);
  expect_agreement(*trace, {.concurrency = 32, .context_limit = 4096});
}

}  // namespace
}  // namespace kv
