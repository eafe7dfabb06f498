// A plugin that is wrong in about one case of a hundred: every part of a campaign must see it, and
// the rate must be told right. One that is right and supports too little must not pass.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/cli/testing/cli_fixture.h"

namespace kv::cli {
namespace {

using Json = nlohmann::json;

struct Rate {
  double failed = 0, judged = 0;
  explicit Rate(const Json& summary)
      : failed(summary.value("fail", 0.0)), judged(failed + summary.value("pass", 0.0)) {}
  /// Whether `p` is within the 99 % score interval (Wilson) of the share that failed.
  bool may_be(double p) const {
    const double z = 2.576;
    return std::abs(failed - judged * p) <= z * std::sqrt(judged * p * (1 - p));
  }
};

TEST_F(CliTest, CheckSeesTheCanaryAndItsRate) {
  const Ran ran = check_with(kMisbehaving, "canary",
                             {"--cases", "600", "--keep-going", "--minimize-attempts", "0",
                              "--json", folder_ + "/check.json"});
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  const Json json = Json::parse(std::ifstream(folder_ + "/check.json"));
  const Rate rate(json["summary"]);
  EXPECT_GT(rate.failed, 0);
  EXPECT_TRUE(rate.may_be(0.01)) << rate.failed << " of " << rate.judged;
  EXPECT_FALSE(rate.may_be(0.1)) << rate.failed << " of " << rate.judged;
  ASSERT_FALSE(found().empty());
  // Each finding fails by itself, in a fresh process.
  const RunSetup canary{.environment = {{"KVERIFY_TEST_FAULT", "canary"}}};
  EXPECT_EQ(run_kverify({"replay", found()[0], "--plugin", kMisbehaving}, canary).status, 1);
  EXPECT_EQ(run_kverify({"replay", found()[0], "--plugin", kHost}).status, 0);
}

TEST_F(CliTest, FuzzAndTriageSeeTheCanary) {
  const RunSetup canary{.environment = {{"KVERIFY_TEST_FAULT", "canary"}}};
  const std::string campaign = folder_ + "/campaign";
  const Ran fuzzed = run_kverify({"fuzz", "--dir", campaign, "--jobs", "2", "--cases", "500",
                                  "--seed", "2", "--plugin", kMisbehaving},
                                 canary);
  EXPECT_EQ(fuzzed.status, 1) << fuzzed.out << fuzzed.err;
  const Ran sorted = run_kverify({"triage", campaign, "--runs", "2", "--plugin", kMisbehaving,
                                  "--json", folder_ + "/triage.json"},
                                 canary);
  EXPECT_EQ(sorted.status, 1) << sorted.out << sorted.err;
  // A sound plugin shows none of them.
  const Ran sound = run_kverify({"triage", campaign, "--runs", "2", "--plugin", kHost});
  EXPECT_NE(sound.status, 1) << sound.out << sound.err;
}

TEST_F(CliTest, AHealthyCampaignHasNoCanary) {
  const Ran ran = check_with(kMisbehaving, "none", {"--cases", "300"});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
}

TEST_F(CliTest, ARightPluginThatDoesLessThanItOffersIsFive) {
  const Ran ran = check_with(kMisbehaving, "little", {"--cases", "400"});
  EXPECT_EQ(ran.status, 5) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "never met   gqa");
  EXPECT_SAYS(ran.out, " 0 fail");
}

}  // namespace
}  // namespace kv::cli
