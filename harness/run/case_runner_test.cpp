#include "harness/run/case_runner.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "harness/case/json.h"

namespace kv {
namespace {

/// Two requests: a prefill of both, then a decode step of both.
Case small_case(uint64_t seed = 1) {
  Case c;
  c.shape = {.query_heads = 4, .kv_heads = 2, .head_dim_k = 16, .head_dim_v = 16};
  c.pool = {.page_slots = 4, .page_count = 12};
  c.data.seed = seed;
  const RequestId a(0), b(1);
  c.ops = {op::Admit{.request = a, .prompt_tokens = 9}, op::Admit{.request = b, .prompt_tokens = 5},
           op::Step{.rows = {{.request = a, .append = 9, .queries = 9},
                             {.request = b, .append = 5, .queries = 5}}},
           op::Step{.rows = {{.request = b, .append = 1, .queries = 1},
                             {.request = a, .append = 1, .queries = 1}}},
           op::Finish{a}};
  return c;
}

class CaseRunnerTest : public testing::Test {
 protected:
  CaseRunnerTest() {
    folder_ = testing::TempDir() + "/case_runner_test-" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    options_.executable = KV_BUILD_DIR "/bin/run_worker_fixture";
    options_.folder = folder_;
    options_.silence_max = std::chrono::seconds(30);
    options_.memory_bytes_max = uint64_t{1} << 30;
    options_.plugin_path = KV_BUILD_DIR "/lib/testdata/libmisbehaving_plugin.so";
    setenv("KVERIFY_SIMT", KV_BUILD_DIR "/lib/simt/libcudart.so.13", 0);
  }
  ~CaseRunnerTest() override {
    std::filesystem::remove_all(folder_);
    unsetenv("KVERIFY_TEST_FAULT");
  }

  Result<CaseRunner> start(const char* fault) {
    setenv("KVERIFY_TEST_FAULT", fault, 1);
    return CaseRunner::start(options_);
  }

  struct Run {
    std::vector<OpObservation> ops;
    RunEnd end;
  };
  static Run finish_one(CaseRunner& runner) {
    Run run;
    for (;;) {
      auto event = runner.next();
      if (!event.ok()) {
        ADD_FAILURE() << event.error().message;
        return run;
      }
      if (auto* end = std::get_if<RunEnd>(&*event)) {
        run.end = *end;
        return run;
      }
      run.ops.push_back(std::get<OpObservation>(*event));
    }
  }
  Run run_with(const char* fault) {
    auto runner = start(fault);
    EXPECT_TRUE(runner.ok()) << runner.error().message;
    EXPECT_TRUE(runner->submit(small_case()).ok());
    return finish_one(*runner);
  }

  std::string folder_;
  RunnerOptions options_;
};

TEST_F(CaseRunnerTest, ObservesEveryOperation) {
  const Run run = run_with("none");
  EXPECT_EQ(run.end.outcome, RunOutcome::kCompleted) << run.end.message;
  ASSERT_EQ(run.ops.size(), 5u);
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(run.ops[i].op_index, i);
    EXPECT_EQ(run.ops[i].status, OpStatus::kOk) << run.ops[i].message;
    EXPECT_TRUE(run.ops[i].trespasses.empty());
    EXPECT_TRUE(run.ops[i].findings.empty());
  }
  const OpObservation& prefill = run.ops[2];
  EXPECT_EQ(prefill.variant, "host");
  ASSERT_EQ(prefill.layers.size(), 1u);
  EXPECT_EQ(prefill.layers[0].output.size(), 14u * 4 * 16 * 2);
  EXPECT_EQ(prefill.layers[0].lse.size(), 14u * 4);
  EXPECT_EQ(prefill.pages.size(), 2u * 5);  // K and V of three pages and of two
  EXPECT_EQ(run.ops[3].pages.size(), 2u * 2);
}

TEST_F(CaseRunnerTest, GivesTheSameBytesTwiceAndAfterOtherCases) {
  const Run alone = run_with("none");
  auto runner = start("none");
  ASSERT_TRUE(runner.ok());
  for (const uint64_t seed : {7, 8, 1}) ASSERT_TRUE(runner->submit(small_case(seed)).ok());
  finish_one(*runner);
  finish_one(*runner);
  EXPECT_EQ(runner->history().size(), 1u);
  const Run later = finish_one(*runner);
  EXPECT_EQ(runner->history().size(), 2u);
  ASSERT_EQ(later.ops.size(), alone.ops.size());
  for (size_t i = 0; i < alone.ops.size(); ++i)
    EXPECT_EQ(encode_operation(0, later.ops[i]), encode_operation(0, alone.ops[i]));
}

TEST_F(CaseRunnerTest, ACrashIsOneFindingAndTheNextCaseRuns) {
  auto runner = start("segfault");
  ASSERT_TRUE(runner.ok());
  ASSERT_TRUE(runner->submit(small_case()).ok());
  ASSERT_TRUE(runner->submit(small_case()).ok());
  setenv("KVERIFY_TEST_FAULT", "none", 1);  // for the process that replaces the dead one
  const Run crashed = finish_one(*runner);
  EXPECT_EQ(crashed.end.outcome, RunOutcome::kCrashed);
  EXPECT_EQ(crashed.end.message, "it was killed by SIGSEGV in attend");
  EXPECT_EQ(crashed.end.op_index, 2u);
  EXPECT_EQ(crashed.ops.size(), 2u);
  EXPECT_EQ(finish_one(*runner).end.outcome, RunOutcome::kCompleted);
}

TEST_F(CaseRunnerTest, AnExitIsACrash) {
  EXPECT_EQ(run_with("exit").end.message, "it exited with status 0 in attend");
}
TEST_F(CaseRunnerTest, AHangIsKilled) {
  options_.silence_max = std::chrono::seconds(1);
  EXPECT_EQ(run_with("hang").end.outcome, RunOutcome::kHung);
}
TEST_F(CaseRunnerTest, EndlessAllocationIsKilled) {
  EXPECT_EQ(run_with("memory").end.outcome, RunOutcome::kMemory);
}

TEST_F(CaseRunnerTest, ReportsRefusalsAndFailures) {
  const Run refused = run_with("refuses");
  EXPECT_EQ(refused.ops.back().status, OpStatus::kRefused);
  EXPECT_EQ(refused.ops.back().message.find_first_not_of("?", refused.ops.back().message.find('?')),
            std::string::npos);
  const Run status = run_with("status");
  EXPECT_EQ(status.ops.back().status, OpStatus::kFailed);
  EXPECT_EQ(status.ops.back().message, "attend returned 77, which is no kv_status");
  EXPECT_EQ(status.ops.size(), 3u);  // what follows would have no meaning
  const Run error = run_with("cuda_error");
  EXPECT_EQ(error.ops.back().status, OpStatus::kFailed);
  EXPECT_NE(error.ops.back().message.find("left a CUDA error behind"), std::string::npos);
}

TEST_F(CaseRunnerTest, SeesInputsThatWereWritten) {
  const Run query = run_with("writes_query");
  ASSERT_FALSE(query.ops[2].trespasses.empty());
  EXPECT_EQ(query.ops[2].trespasses[0].tensor, "query");
  EXPECT_EQ(query.ops[2].trespasses[0].offset_bytes, 0u);
  const Run table = run_with("writes_table");
  ASSERT_FALSE(table.ops[2].trespasses.empty());
  EXPECT_EQ(table.ops[2].trespasses[0].tensor, "block_table");
}

TEST_F(CaseRunnerTest, SeesPagesThatNobodyShouldHaveWritten) {
  const Run run = run_with("writes_slack");
  const auto& pages = run.ops[2].pages;
  EXPECT_TRUE(std::any_of(pages.begin(), pages.end(),
                          [](const PageImage& image) { return image.page == PageId(11); }));
}

TEST_F(CaseRunnerTest, LeavesTheCanaryInRowsThatNobodyWrote) {
  const Run run = run_with("unwritten");
  for (const std::byte b : run.ops[2].layers[0].output) ASSERT_EQ(b, kOutputCanary);
}

/// Copies bring undefined bytes to where results lie: no kernel stores them, and they may be right.
/// Fails when what is read back is not asked for its definedness.
TEST_F(CaseRunnerTest, UndefinedDataInAResultIsAFinding) {
  const std::pair<const char*, const char*> faults[] = {
      {"undefined_output", "the output element 3: 2 undefined bytes at "},
      {"undefined_lse", "the LSE element 1: 4 undefined bytes at "},
      {"undefined_key", "the key cache, page "}};
  for (const auto& [fault, says] : faults) {
    const Run run = run_with(fault);
    ASSERT_GE(run.ops.size(), 3u) << fault;
    ASSERT_EQ(run.ops[2].findings.size(), 1u) << fault;
    const DeviceFinding& finding = run.ops[2].findings[0];
    EXPECT_EQ(finding.kind, KV_SIMT_KIND_UNDEFINED);
    EXPECT_EQ(finding.message.rfind(says, 0), 0u) << finding.message;
    EXPECT_NE(finding.message.find("it was copied from "), std::string::npos) << finding.message;
  }
}
/// The twin: the same detour with defined bytes. And what nobody wrote is for the judge.
TEST_F(CaseRunnerTest, DefinedAndUnwrittenResultsAreNone) {
  for (const char* fault : {"detours", "unwritten"})
    for (const OpObservation& op : run_with(fault).ops)
      EXPECT_TRUE(op.findings.empty()) << fault << ": " << op.findings[0].message;
}

TEST_F(CaseRunnerTest, ReplacesAProcessAfterItsShareOfCases) {
  options_.process_cases_max = 2;
  auto runner = start("none");
  ASSERT_TRUE(runner.ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(runner->submit(small_case()).ok());
  for (const size_t history : {0, 1, 0, 1, 0}) {
    EXPECT_EQ(finish_one(*runner).end.outcome, RunOutcome::kCompleted);
    EXPECT_EQ(runner->history().size(), history);
  }
}

TEST_F(CaseRunnerTest, ReplacesAProcessWhenAsked) {
  auto runner = start("none");
  ASSERT_TRUE(runner.ok());
  ASSERT_TRUE(runner->submit(small_case()).ok());
  finish_one(*runner);
  runner->refresh();
  ASSERT_TRUE(runner->submit(small_case()).ok());
  EXPECT_EQ(finish_one(*runner).end.outcome, RunOutcome::kCompleted);
  EXPECT_EQ(runner->history().size(), 0u);
}

// Kills: a case that follows in the same file with the tail of a longer one behind it.
TEST_F(CaseRunnerTest, KeepsRunningCasesOnDisk) {
  options_.silence_max = std::chrono::seconds(1);
  const std::string path = folder_ + "/case-0.json";
  Case longer = small_case(3);
  longer.comment = "longer than the one that follows";
  {
    auto runner = start("hang");
    ASSERT_TRUE(runner.ok());
    for (const Case& c : {longer, small_case(3)}) {
      ASSERT_TRUE(runner->submit(c).ok());
      const auto stored = load_case(path);
      ASSERT_TRUE(stored.ok()) << stored.error().message;
      EXPECT_EQ(*stored, c);
      finish_one(*runner);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(CaseRunnerTest, WhatThePluginDoesNotOfferIsUnsupported) {
  Case c = small_case();
  c.exec.split_slots = 4;
  auto runner = start("none");
  ASSERT_TRUE(runner.ok());
  ASSERT_TRUE(runner->submit(c).ok());
  const Run run = finish_one(*runner);
  EXPECT_EQ(run.end.outcome, RunOutcome::kUnsupported);
  EXPECT_NE(run.end.message.find("no splits"), std::string::npos);
}

TEST_F(CaseRunnerTest, AForcedVariantMustRunInSomeStep) {
  auto runner = start("none");
  ASSERT_TRUE(runner.ok());
  Case c = small_case();
  c.exec.variant = "host";
  ASSERT_TRUE(runner->submit(c).ok());
  EXPECT_EQ(finish_one(*runner).end.outcome, RunOutcome::kCompleted);
  c.exec.variant = "other";
  ASSERT_TRUE(runner->submit(c).ok());
  const Run run = finish_one(*runner);
  EXPECT_EQ(run.end.outcome, RunOutcome::kUnsupported);
  EXPECT_NE(run.end.message.find("offered for no step"), std::string::npos) << run.end.message;
}

// Fails when a view of another stride gives other results, or a gap lets through what it must not.
TEST_F(CaseRunnerTest, ViewsWithGapsGiveTheSameResults) {
  const Run dense = run_with("none");
  Case c = small_case();
  c.pool.layout = CacheLayout::kInterleaved;
  auto runner = start("none");
  ASSERT_TRUE(runner.ok() && runner->submit(c).ok());
  const Run views = finish_one(*runner);
  ASSERT_EQ(views.ops.size(), dense.ops.size());
  for (size_t i = 0; i < views.ops.size(); ++i) {
    EXPECT_TRUE(views.ops[i].trespasses.empty());
    EXPECT_TRUE(views.ops[i].findings.empty());
    ASSERT_EQ(views.ops[i].layers.size(), dense.ops[i].layers.size());
    for (size_t l = 0; l < views.ops[i].layers.size(); ++l) {
      EXPECT_EQ(views.ops[i].layers[l].output, dense.ops[i].layers[l].output);
      EXPECT_EQ(views.ops[i].layers[l].lse, dense.ops[i].layers[l].lse);
    }
    ASSERT_EQ(views.ops[i].pages.size(), dense.ops[i].pages.size());
    for (size_t p = 0; p < views.ops[i].pages.size(); ++p)
      EXPECT_EQ(views.ops[i].pages[p].bytes, dense.ops[i].pages[p].bytes);
  }
}

// The host plugin copies by way of the host, which no graph can hold.
TEST_F(CaseRunnerTest, APromiseOfGraphsIsHeldAndNothingElseIsAskedOfThem) {
  Case c = small_case();
  c.exec.graph = true;
  for (const bool promised : {true, false}) {
    auto runner = start(promised ? "promises_graph" : "none");
    ASSERT_TRUE(runner.ok() && runner->submit(c).ok());
    const Run run = finish_one(*runner);
    if (promised) {
      ASSERT_FALSE(run.ops.empty());
      EXPECT_EQ(run.ops.back().status, OpStatus::kFailed);
      EXPECT_NE(run.ops.back().message, "");
    } else {
      EXPECT_EQ(run.end.outcome, RunOutcome::kUnsupported) << run.end.message;
    }
  }
}

TEST_F(CaseRunnerTest, AnInterruptEndsTheWait) {
  std::atomic<bool> interrupted = false;
  options_.interrupted = &interrupted;
  auto runner = start("hang");
  ASSERT_TRUE(runner.ok());
  ASSERT_TRUE(runner->submit(small_case()).ok());
  interrupted = true;
  auto event = runner->next();
  while (event.ok()) event = runner->next();
  EXPECT_EQ(event.error().kind, ErrorKind::kTimeLimit);
}

}  // namespace
}  // namespace kv
