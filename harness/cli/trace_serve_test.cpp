// `kverify trace serve` as a shell sees it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/cli/testing/program.h"

namespace kv::cli {
namespace {

const std::string kTrace = KV_SOURCE_DIR "/corpus/seeds/small_trace.csv";

TEST(TraceServeCommand, PrintsTheSameJsonTwice) {
  const std::vector<std::string> arguments = {"trace", "serve",      kTrace, "--batches",
                                              "1,4",   "--contexts", "0,64", "--concurrency",
                                              "0,2",   "--json"};
  const Ran first = run_kverify(arguments), second = run_kverify(arguments);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(first.out, second.out);
  const auto json = nlohmann::json::parse(first.out);
  EXPECT_EQ(json["waits"].size(), 16u);  // with arrivals and without
  EXPECT_EQ(json["waits"][8]["step_ns"], 25'000'000);
  EXPECT_GT(json["batching"]["continuous"]["returned_pages"], 0);
  EXPECT_GT(json["pages"]["pages"], 0);
  EXPECT_GE(json["batching"]["static"]["steps"], json["batching"]["continuous"]["steps"]);
  EXPECT_NE(first.err.find("internal fragmentation"), std::string::npos) << first.err;
}

TEST(TraceServeCommand, DrawsThePool) {
  const std::string picture =
      testing::TempDir() + "/trace_serve_test-" + std::to_string(getpid()) + ".svg";
  ASSERT_EQ(run_kverify({"trace", "serve", kTrace, "--svg", picture}).status, 0);
  std::ifstream file(picture);
  const std::string svg{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(svg.find("pages returned so far"), std::string::npos);
  EXPECT_EQ(run_kverify({"trace", "serve", kTrace, "--svg", kTrace}).status, 2);
}

TEST(TraceServeCommand, RefusesWithExitCodeTwo) {
  for (const auto& more : std::vector<std::vector<std::string>>{{"--pages", "100"},
                                                                {"--page-slots", "12"},
                                                                {"--batches", "0"},
                                                                {"--contexts", "many"},
                                                                {"--step-ms", "soon"}}) {
    std::vector<std::string> arguments = {"trace", "serve", kTrace};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = run_kverify(arguments);
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_FALSE(ran.err.empty());
  }
  EXPECT_EQ(run_kverify({"trace", "serve", "missing.csv"}).status, 2);
}

}  // namespace
}  // namespace kv::cli
