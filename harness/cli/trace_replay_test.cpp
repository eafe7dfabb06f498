// `kverify trace run --level engine` as a shell sees it, over kvattn.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/cli/testing/program.h"

namespace kv::cli {
namespace {

using Json = nlohmann::json;

const std::string kTrace = KV_SOURCE_DIR "/corpus/seeds/small_trace.csv";
const std::string kHostPlugin = KV_BUILD_DIR "/lib/libkvattn_host_plugin.so";

Ran replay(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"trace", "run", kTrace, "--level", "engine", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_kverify(arguments);
}

TEST(TraceReplayCommand, ServesAndJudgesTheTrace) {
  const std::vector<std::string> options = {"--sample", "5", "--completions", "3", "--batch", "4"};
  const Ran first = replay(options), second = replay(options);
  ASSERT_EQ(first.status, 0) << first.out << first.err;
  EXPECT_EQ(first.out, second.out);
  const Json json = Json::parse(first.out);
  EXPECT_GT(json["replay"]["rows_judged"], 0);
  EXPECT_LT(json["replay"]["rows_judged"], json["replay"]["rows"]);
  EXPECT_EQ(json["replay"]["refused"], 0);
  EXPECT_GE(json["replay"]["slots_read"], json["replay"]["appended_slots"]);
  EXPECT_EQ(json["completions"]["equal"], true);
  EXPECT_LT(json["completions"]["forked"]["projected"],
            json["completions"]["encoded"]["projected"]);
}

TEST(TraceReplayCommand, OptionsOfTheEngineAreRefusedForKernels) {
  const Ran ran = run_kverify({"trace", "run", kTrace, "--batch", "4"});
  EXPECT_EQ(ran.status, 2) << ran.out;
  EXPECT_NE(ran.err.find("--batch: expected --level engine, got kernel"), std::string::npos)
      << ran.err;
}

TEST(TraceReplayCommand, ATraceOfWhichNothingFitsIsVacuous) {
  const Ran ran = replay({"--plugin", kHostPlugin, "--pool-pages", "1"});
  EXPECT_EQ(ran.status, 5) << ran.out << ran.err;
  EXPECT_EQ(Json::parse(ran.out)["exit_code"], 5);
}

TEST(TraceReplayCommand, AnEngineWithoutAttentionIsJudgedByStructureAndBytes) {
  const Ran ran = replay({"--plugin", kHostPlugin, "--step-ms", "50"});
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_EQ(Json::parse(ran.out)["replay"]["rows_judged"], 0);
  EXPECT_NE(ran.err.find("no attention"), std::string::npos) << ran.err;
}

TEST(TraceReplayCommand, RefusesWithExitCodeTwo) {
  for (const auto& more : std::vector<std::vector<std::string>>{{"--page-slots", "12"},
                                                                {"--batch", "0"},
                                                                {"--sample", "0"},
                                                                {"--step-ms", "-1"},
                                                                {"--scale", "0.5"}}) {
    EXPECT_EQ(replay(more).status, 2);
  }
  EXPECT_EQ(run_kverify({"trace", "run", kTrace, "--completions", "2"}).status, 2);
}

}  // namespace
}  // namespace kv::cli
