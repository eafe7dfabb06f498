// Two builds that answer alike are told to, one that fails or whose errors grew inside their bounds
// is a regression. A changed bit that is not counted, or a regression that passes, makes it fail.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/cli/testing/cli_fixture.h"

namespace kv::cli {
namespace {

class DiffTest : public CliTest {
 protected:
  Ran diff(const std::string& before, const std::string& after, const char* fault,
           std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"diff",    before, after,    "--corpus", folder_,
                                          "--cases", "20",   "--json", json_path()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_kverify(arguments, {.environment = {{"KVERIFY_TEST_FAULT", fault}}});
  }
  std::string json_path() const { return folder_ + "/diff.json"; }
  nlohmann::json json() const {
    std::ifstream file(json_path());
    return nlohmann::json::parse(file);
  }
};

TEST_F(DiffTest, ABuildIsEqualToItself) {
  const Ran ran = diff(kHost, kHost, "none");
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "all bits are equal");
  EXPECT_EQ(json()["equal_bits"], true);
  EXPECT_GT(json()["bits"]["elements"], 1000);
  EXPECT_EQ(json()["elements_judged"]["old"], json()["elements_judged"]["new"]);
}

TEST_F(DiffTest, WhatFailedBeforeIsNoRegression) {
  EXPECT_EQ(diff(kMisbehaving, kMisbehaving, "wrong_value").status, 0);
  EXPECT_EQ(diff(kMisbehaving, kHost, "wrong_value").status, 0);
  EXPECT_EQ(json()["equal_bits"], false);
}

TEST_F(DiffTest, ANewFailureIsARegression) {
  const Ran ran = diff(kHost, kMisbehaving, "wrong_value");
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "pass -> fail");
  EXPECT_GT(json()["bits"]["elements_changed"], 0);
  EXPECT_GT(json()["differences"].size(), 0u);
  EXPECT_EQ(diff(kHost, kMisbehaving, "segfault").status, 1);
}

TEST_F(DiffTest, ErrorsThatGrewInsideTheirBoundsAreARegression) {
  const std::vector<std::string> strict = {"--floor", "0.001"};
  const Ran ran = diff(kHost, kMisbehaving, "coarse_lse", strict);
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "largest");
  EXPECT_SAYS(ran.out, "regressed");
  EXPECT_GT(json()["bits"]["lse_changed"], 0);
  EXPECT_EQ(json()["bits"]["elements_changed"], 0);
  EXPECT_EQ(json()["differences"].size(), 0u);
  EXPECT_EQ(diff(kHost, kMisbehaving, "coarse_lse", {"--factor", "1000000", "--floor", "1"}).status,
            0);
  EXPECT_EQ(diff(kHost, kMisbehaving, "coarse_lse", {"--floor", "1", "--exact"}).status, 1);
}

TEST_F(DiffTest, RefusesWhatIsNoPlugin) {
  EXPECT_EQ(diff(kHost, folder_ + "/none.so", "none").status, 2);
  EXPECT_EQ(diff(kPlugins + "libno_plugin.so", kHost, "none").status, 2);
  EXPECT_EQ(run_kverify({"diff", kHost}).status, 2);
}

}  // namespace
}  // namespace kv::cli
