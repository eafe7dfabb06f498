// `kverify plan` as a shell sees it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/cli/testing/program.h"

namespace kv::cli {
namespace {

const std::string kLlama = KV_SOURCE_DIR "/harness/plan/testdata/llama_7b.json";
const std::string kTrace = KV_SOURCE_DIR "/corpus/seeds/small_trace.csv";

TEST(PlanCommand, PrintsBytesAndJson) {
  const Ran ran =
      run_kverify({"plan", kLlama, "--context", "4096", "--batch", "8", "--memory-gib", "30",
                   "--weights-gib", "13", "--trace", kTrace, "--advise", "--json"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["token_bytes"], 524'288u);
  EXPECT_EQ(json["workload"]["bytes"], 17'179'869'184u);
  EXPECT_EQ(json["capacity"]["largest_batch"][2]["context"], 4096u);
  EXPECT_EQ(json["capacity"]["largest_batch"][2]["batch"], 8u);  // 17 GiB
  EXPECT_EQ(json["advice"].size(), 5u);
  EXPECT_EQ(json["admission"]["refused"], 0u);
  EXPECT_NE(ran.err.find("16.000 GiB"), std::string::npos) << ran.err;
}

// Kills: a trace that is admitted one request after the other because nobody said how many.
TEST(PlanCommand, AdmitsAsManyAsTheMemoryHoldsUnlessABatchIsSaid) {
  const auto peak = [](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"plan",    kLlama, "--memory-gib", "30",
                                          "--trace", kTrace, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = run_kverify(arguments);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return nlohmann::json::parse(ran.out)["admission"]["batch_peak"].get<uint64_t>();
  };
  EXPECT_EQ(peak({"--batch", "1"}), 1u);
  EXPECT_GT(peak({}), 1u);
}

TEST(PlanCommand, RefusesWithExitCodeTwo) {
  const std::string path =
      testing::TempDir() + "/hostile_config-" + std::to_string(getpid()) + ".json";
  std::ofstream(path) << R"({"num_hidden_layers": 1e999})";
  const std::string untyped = path + ".untyped";
  std::ofstream(untyped) << R"({"n_layer": 2, "n_head": 2, "n_embd": 64, "n_ctx": 1024})";
  EXPECT_EQ(run_kverify({"plan", untyped, "--kv-dtype", "f16"}).status, 0);
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"plan", path},
           {"plan", "missing.json"},
           {"plan", kLlama, "--ranks", "3"},
           {"plan", kLlama, "--memory-gib", "10", "--weights-gib", "10"},
           {"plan", kLlama, "--trace", kTrace},
           {"plan", kLlama, "--requests", "4", "--memory-gib", "10"},
           {"plan", kLlama, "--weights-gib", "4"},
           {"plan", untyped},
           {"plan", kLlama, "--trace", kTrace, "--memory-gib", "0.001"},
           {"plan", kLlama, "--kv-dtype", "f12"}}) {
    const Ran ran = run_kverify(arguments);
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_FALSE(ran.err.empty());
  }
  std::filesystem::remove(path);
  std::filesystem::remove(untyped);
}

}  // namespace
}  // namespace kv::cli
