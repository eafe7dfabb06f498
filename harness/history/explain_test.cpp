#include "harness/history/explain.h"

#include <gtest/gtest.h>

#include "harness/history/testing/plain_engine.h"

namespace kv {
namespace {

constexpr RequestId kA(3), kB(4);

Case shared_tail() {
  Case c;
  c.shape.head_dim_k = c.shape.head_dim_v = 4;
  c.shape.query_heads = c.shape.kv_heads = 1;
  c.pool.page_slots = 4;
  c.pool.page_count = 8;
  c.pool.overcommit = 8;
  c.engine = EngineLevel{.context_limit = 32};
  c.ops = {op::Admit{.request = kA, .prompt_tokens = 5, .position_offset = 7},
           op::Step{.rows = {{.request = kA, .append = 5}}}, op::Fork{kA, kB},
           op::Reorder{{kA, kB}, {kB, kA}}, op::Step{.rows = {{.request = kB, .append = 1}}}};
  return c;
}

TEST(Explain, SaysWhoWroteTheSlotLast) {
  const Case c = shared_tail();
  PlainEngine engine(c, Fault::kWriteOtherToken);
  const HistoryResult result = run_history(c, engine, {.record = true});
  ASSERT_TRUE(result.finding);
  const FindingPlace place = place_of(c, *result.finding, result.records);
  const std::string text = explain_history(c, *result.finding, place);
  for (const char* part :
       {"found by    provenance", "ops[4]: step of requests 4+1 at 5", "request 4", "slot 5",
        "position offset 7", "reorder     ops[3]: 3<-4 4<-3",
        "written by request 4, slots 5 to 5 (step of requests 4+1 at 5)"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  const auto json = finding_json(c, *result.finding, place);
  EXPECT_EQ(json["slot"], 5);
  EXPECT_EQ(json["length"], 6);
  EXPECT_EQ(json["block_table"].size(), 2u);
  EXPECT_EQ(json["page"], json["block_table"][1]);
}

TEST(Explain, TheTraceHasEveryOperationAndPageCount) {
  const Case c = shared_tail();
  PlainEngine engine(c, Fault::kNone);
  const HistoryResult result = run_history(c, engine, {.record = true});
  ASSERT_FALSE(result.finding) << result.finding->message;
  const auto trace = chrome_trace(c, result.records);
  size_t slices = 0, counters = 0;
  for (const auto& event : trace["traceEvents"]) {
    slices += event["ph"] == "X";
    if (event["ph"] != "C") continue;
    ++counters;
    uint64_t pages = 0;
    for (const auto& count : event["args"]) pages += count.get<uint64_t>();
    EXPECT_EQ(pages, 8u);
  }
  EXPECT_EQ(counters, result.records.size());
  EXPECT_GE(slices, counters);
}

}  // namespace
}  // namespace kv
