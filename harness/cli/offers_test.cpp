// What a plugin does not offer is not drawn, from the first case: a plugin that offers little is
// judged as one that offers much. Fails when the covering array, the probe or the must-hit list
// forgets what is on offer: then most cases are refused, or the run ends with exit code 5.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/cli/testing/program.h"

namespace kv::cli {
namespace {

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

struct Checked {
  Ran ran;
  nlohmann::json json;
};

Checked check_narrow(std::vector<std::string> environment_name) {
  const std::string folder = testing::TempDir() + "/offers_test-" + std::to_string(getpid());
  std::filesystem::create_directories(folder + "/seeds");
  RunSetup setup;
  if (!environment_name.empty()) setup.environment = {{environment_name[0], "1"}};
  Checked checked{
      .ran = run_kverify({"check", "--plugin", KV_BUILD_DIR "/lib/testdata/libnarrow_plugin.so",
                          "--corpus", folder, "--out", folder + "/found", "--seed", "1", "--cases",
                          "200", "--json", folder + "/j.json"},
                         setup),
      .json = {}};
  std::ifstream file(folder + "/j.json");
  checked.json = nlohmann::json::parse(file, nullptr, false);
  std::filesystem::remove_all(folder);
  return checked;
}

TEST(Offers, APluginThatOffersLittleIsJudged) {
  const Checked checked = check_narrow({});
  EXPECT_EQ(checked.ran.status, 0) << checked.ran.out << checked.ran.err;
  const auto& summary = checked.json["summary"];
  EXPECT_GE(summary["cases"].get<int>(), 200);
  EXPECT_GE(summary["pass"].get<double>(), 0.95 * summary["cases"].get<double>());
  EXPECT_SAYS(checked.ran.out, "not asked   ");
  EXPECT_EQ(summary["must_hit"]["met"], summary["must_hit"]["required"]);
  EXPECT_EQ(summary["features"]["f32"], summary["pass"]);
  EXPECT_EQ(summary["features"]["head_dim_128"], summary["pass"]);
}

TEST(Offers, APluginThatRefusesWhatItOffersIsNotGreen) {
  const Checked checked = check_narrow({"KVERIFY_TEST_REFUSES"});
  EXPECT_EQ(checked.ran.status, 7) << checked.ran.out << checked.ran.err;
}

}  // namespace
}  // namespace kv::cli
