// `kverify profile` on our own library: exact, repeatable, and the parts add up.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/cli/testing/program.h"

namespace kv::cli {
namespace {

const std::string kCase = KV_SOURCE_DIR "/corpus/seeds/mixed_batch_page_reuse.json";

Ran profile(const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"profile", kCase};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_kverify(arguments);
}

TEST(Profile, CountsAreExactRepeatableAndAddUp) {
  const Ran first = profile({"--json"}), second = profile({"--json"});
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(first.out, second.out);
  const auto json = nlohmann::json::parse(first.out);
  ASSERT_GT(json["launches"].size(), 0u);
  const auto& sum = json["sum"];
  for (const char* name : {"blocks", "warp_instructions", "mma", "global_load_sectors",
                           "global_bytes_compulsory", "shared_requests", "barriers"}) {
    uint64_t total = 0;
    for (const auto& launch : json["launches"]) total += launch[name].get<uint64_t>();
    EXPECT_EQ(sum[name], total) << name;
  }
  EXPECT_GT(sum["global_bytes_compulsory"], 0);
  EXPECT_GE(sum["global_bytes_moved"], sum["global_bytes_compulsory"]);
  uint64_t executed = 0;
  for (const auto& [name, count] : sum["instructions"].items()) executed += count.get<uint64_t>();
  EXPECT_GT(executed, 0u);
  // A barrier counts once for each part of a warp that arrives, the warp's instruction once.
  const uint64_t arrivals = sum["instructions"]["barrier"].get<uint64_t>();
  EXPECT_LE(executed - arrivals, sum["warp_instructions"].get<uint64_t>());
}

TEST(Profile, TheTableNamesEachLaunch) {
  const Ran ran = profile();
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("warp instructions by class"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("\nsum "), std::string::npos) << ran.out;
}

TEST(Profile, LinesThatRan) {
  const std::string path = testing::TempDir() + "/profile_test-" + std::to_string(getpid());
  ASSERT_EQ(profile({"--lcov", path}).status, 0);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  unlink(path.c_str());
  EXPECT_NE(text.str().find("SF:" KV_SOURCE_DIR "/impl/kernels/"), std::string::npos);
  EXPECT_NE(text.str().find("end_of_record"), std::string::npos);
}

TEST(Profile, Refusals) {
  EXPECT_EQ(profile({"--device", "cuda"}).status, 2);
  EXPECT_EQ(run_kverify({"profile", "no_such_case.json"}).status, 2);
}

}  // namespace
}  // namespace kv::cli
