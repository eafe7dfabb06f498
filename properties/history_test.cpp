// Histories on our own engine, placement alone, in this process. The faults that the judge finds in
// an engine are those of harness/history/judge_test.cpp and of the planted bugs in corpus/mutants.
#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/engine/local_engine.h"
#include "harness/gen/draw_history.h"
#include "harness/history/judge.h"
#include "properties/engine_plugin.h"
#include "properties/gen/cases.h"

namespace kv::props {
namespace {

HistoryResult run_on(const std::string& plugin, const Case& c) {
  const kv_engine_level* level = load_engine(plugin);
  KV_CHECK(level != nullptr, "the plugin cannot be loaded: " + plugin);
  auto engine = LocalEngine::create(*level, c);
  KV_CHECK(engine.ok(), engine.error().message);
  return run_history(c, **engine, {});
}

HistoryResult run_on_host(const Case& c) {
  return run_on(KV_BUILD_DIR "/lib/libkvattn_host_plugin.so", c);
}

// For tests that must be able to fail: a planted bug in its place (corpus/mutants/CMakeLists.txt).
HistoryResult run_on_tested(const Case& c) {
  const char* planted = std::getenv("KV_HISTORY_PLUGIN");
  return planted == nullptr ? run_on_host(c) : run_on(planted, c);
}

std::string told(const HistoryResult& result) {
  if (!result.finding) return "";
  const HistoryFinding& f = *result.finding;
  return std::string(check_name(f.check)) + ", ops[" + std::to_string(f.op_index) + "], " +
         f.operation + ": " + f.message;
}

// Kills: every planted bug of the manager that a history reaches.
RC_GTEST_PROP(HistoryProperty, TheEngineKeepsTheContract, ()) {
  const Case c = *histories();
  RC_ASSERT(told(run_on_host(c)) == "");
}

// Kills: an engine or a judge that depends on addresses, time or unordered iteration.
RC_GTEST_PROP(HistoryProperty, ARunRepeatsItself, ()) {
  const Case c = *histories();
  const HistoryResult a = run_on_host(c), b = run_on_host(c);
  RC_ASSERT(a.stats.succeeded == b.stats.succeeded);
  RC_ASSERT(a.stats.slots_read == b.stats.slots_read);
  RC_ASSERT(a.stats.counters == b.stats.counters);
}

// Fails when a table without a function at its end is read beyond it, or when what such an engine
// cannot show is held against it.
TEST(EngineTable, MayLackWhatItsContractLeavesOpen) {
  const kv_engine_level* whole = load_engine(KV_BUILD_DIR "/lib/libkvattn_host_plugin.so");
  ASSERT_NE(whole, nullptr);
  PhiloxSource choices(1, 3);
  Case c = draw_history(choices, {});
  c.engine->prefix_cache = true;
  const auto said = [&](const kv_engine_level& level) {
    auto engine = LocalEngine::create(level, c);
    if (engine.ok()) return told(run_history(c, **engine, {}));
    EXPECT_EQ(engine.error().kind, ErrorKind::kUnsupported);
    return engine.error().message;
  };
  EXPECT_EQ(said(*whole), "");
  kv_engine_level one_by_one = *whole;
  one_by_one.struct_bytes = offsetof(kv_engine_level, read_slots);
  EXPECT_EQ(said(one_by_one), "");
  kv_engine_level many_at_once = *whole;
  many_at_once.read_slot = nullptr;
  many_at_once.read_page = nullptr;
  EXPECT_EQ(said(many_at_once), "");
  const auto lacks = [](const std::string& name) {
    return "engine: the plugin does not offer " + name +
           ", and what it holds cannot be judged without";
  };
  kv_engine_level shortest = *whole;
  shortest.struct_bytes = offsetof(kv_engine_level, snapshot);
  EXPECT_EQ(said(shortest), lacks("snapshot"));
  kv_engine_level unread = one_by_one;
  unread.read_slot = nullptr;
  EXPECT_EQ(said(unread), lacks("read_slot"));
  kv_engine_level unread_pages = one_by_one;
  unread_pages.read_page = nullptr;
  EXPECT_EQ(said(unread_pages), lacks("read_page"));
  c.engine->prefix_cache = false;
  EXPECT_EQ(said(unread_pages), "");
}

TEST(HistoryCampaign, MeetsEveryPairOfOperationsAndEveryKindOfPage) {
  HistoryStats all;
  for (uint64_t i = 0; i < 1500; ++i) {
    PhiloxSource choices(1, i);
    const HistoryResult result = run_on_host(draw_history(choices, {}));
    ASSERT_FALSE(result.finding) << "history " << i << ": " << told(result);
    all += result.stats;
  }
  for (size_t a = 0; a < kOpKinds; ++a) {
    for (size_t b = 0; b < kOpKinds; ++b) EXPECT_GT(all.adjacent[a][b], 0u) << a << " then " << b;
  }
  const EngineCounters& c = all.counters;
  for (const uint64_t met :
       {c.hit_pages, c.published_pages, c.evicted_pages, c.expired_pages, c.copied_slots,
        c.swapped_out_pages, c.swapped_in_pages, c.fenced_pages}) {
    EXPECT_GT(met, 100u);
  }
}

// Kills, on the planted engines of corpus/mutants that are named there: positions, pairs and scales
// of an append that turns or quantises, by stored bytes alone.
TEST(HistoryCampaign, StoredBytesAreTheirTokens) {
  uint64_t turned = 0, quantised = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    PhiloxSource choices(3, i);
    const Case c = draw_history(choices, {});
    const HistoryResult result = run_on_tested(c);
    ASSERT_FALSE(result.finding) << "history " << i << ": " << told(result);
    turned += c.shape.rope.pairing != RopePairing::kNone;
    quantised += dtype_bytes(c.shape.kv_dtype) == 1;
  }
  EXPECT_GT(turned, 80u);
  EXPECT_GT(quantised, 80u);
}

// A history of 60 operations that shares, forks, swaps and speculates, and evicts because there is
// no room, not because it is told to.
Case sixty_operations(uint64_t seed) {
  for (uint64_t i = 0;; ++i) {
    PhiloxSource choices(seed, i);
    Case c = draw_history(choices, {});
    std::erase_if(c.ops, [](const Op& op) { return std::holds_alternative<op::Evict>(op); });
    if (c.ops.size() < 60) continue;
    c.ops.resize(60);
    const HistoryResult result = run_on_host(c);
    const EngineCounters& n = result.stats.counters;
    const bool rich = n.hit_pages > 0 && n.evicted_pages > 0 && n.copied_slots > 0 &&
                      n.swapped_in_pages > 0 && c.engine->async_depth > 0;
    if (rich) return c;
  }
}

TEST(HistoryCampaign, ARequestMayBeCancelledAtEveryBoundary) {
  const Case base = sixty_operations(11);
  uint64_t cancelled = 0;
  for (size_t at = 0; at <= base.ops.size(); ++at) {
    std::set<RequestId> ids;
    for (size_t i = 0; i < at; ++i) {
      if (const auto* admit = std::get_if<op::Admit>(&base.ops[i])) ids.insert(admit->request);
      if (const auto* fork = std::get_if<op::Fork>(&base.ops[i])) ids.insert(fork->child);
    }
    for (const RequestId id : ids) {
      Case c = base;
      c.ops.insert(c.ops.begin() + static_cast<ptrdiff_t>(at), op::Cancel{id});
      const HistoryResult result = run_on_tested(c);
      ASSERT_FALSE(result.finding)
          << "request " << id.value << " before ops[" << at << "]: " << told(result);
      ++cancelled;
    }
  }
  EXPECT_GT(cancelled, 100u);
  RecordProperty("cancels", static_cast<int>(cancelled));
}

// How many allocations of the history failed, each in a run of its own, and were felt.
uint64_t fail_every_allocation(const Case& base) {
  const HistoryStats whole = run_on_tested(base).stats;
  uint64_t felt = 0, unfelt = 0;
  for (uint64_t nth = 1; unfelt < 50; ++nth) {
    Case c = base;
    c.ops.insert(c.ops.begin(), op::FailAllocation{nth});
    const HistoryResult result = run_on_tested(c);
    if (result.finding) {
      ADD_FAILURE() << "allocation " << nth << ": " << told(result);
      return felt;
    }
    const bool failed =
        result.stats.succeeded != whole.succeeded + 1 || result.stats.exhausted != whole.exhausted;
    felt += failed;
    unfelt = failed ? 0 : unfelt + 1;
  }
  return felt;
}

// Of several histories: in one of them an allocation that fails may never be one that must evict.
TEST(HistoryCampaign, EveryAllocationMayFail) {
  uint64_t felt = 0;
  for (uint64_t seed = 11; seed < 19; ++seed) {
    felt += fail_every_allocation(sixty_operations(seed));
    if (HasFailure()) return;
  }
  EXPECT_GT(felt, 100u);
  RecordProperty("allocations", static_cast<int>(felt));
}

}  // namespace
}  // namespace kv::props
