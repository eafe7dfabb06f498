// What follows a finding, end to end: minimize, explain, a campaign and its triage.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/campaign/state.h"
#include "harness/cli/testing/cli_fixture.h"

namespace kv::cli {
namespace {

TEST_F(CliTest, MinimizeKeepsTheFailureAndSaysWhere) {
  const std::string path = stored("small.json", small_case());
  const Ran ran =
      run_kverify({"minimize", path, "--plugin", kMisbehaving, "--json", folder_ + "/m.json"},
                  {.environment = {{"KVERIFY_TEST_FAULT", "wrong_value"}}});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  const auto small = load_case(folder_ + "/small.min.json");
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(small->ops.size(), 2u);
  EXPECT_EQ(small->shape.head_dim_k, 1u);
  EXPECT_TRUE(small->data.digest.has_value());
  const Ran again = run_kverify({"replay", folder_ + "/small.min.json", "--plugin", kMisbehaving},
                                {.environment = {{"KVERIFY_TEST_FAULT", "wrong_value"}}});
  EXPECT_EQ(again.status, 1) << again.out;
}

TEST_F(CliTest, MinimizeNoticesWhatIsNotDeterministic) {
  const std::string path = stored("small.json", small_case());
  const Ran ran = run_kverify({"minimize", path, "--plugin", kMisbehaving},
                              {.environment = {{"KVERIFY_TEST_FAULT", "flaky"},
                                               {"KVERIFY_TEST_MARKER", folder_ + "/marker"}}});
  EXPECT_EQ(ran.status, 4) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "failed in 1 of 3 runs");
}

TEST_F(CliTest, MinimizeRefusesACaseThatPasses) {
  const Ran ran = run_kverify({"minimize", stored("small.json", small_case()), "--plugin", kHost});
  EXPECT_EQ(ran.status, 2) << ran.out << ran.err;
  EXPECT_SAYS(ran.err, "expected a case that fails, got pass");
}

TEST_F(CliTest, CheckOffersAMinimizedCase) {
  const Ran ran = check_with(kMisbehaving, "wrong_value", {"--cases", "5"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_SAYS(ran.out, "minimized     " + folder_ + "/found/minimized/");
  EXPECT_FALSE(fs::is_empty(folder_ + "/found/minimized"));
}

/// Fails when a finding is told only once it has been minimized, or when a run has no summary
/// because it could not be.
TEST_F(CliTest, AFindingThatCannotBeMinimizedIsToldAllTheSame) {
  fs::create_directories(folder_ + "/found");
  std::ofstream(folder_ + "/found/minimized") << "in the way of a folder";
  const Ran ran = check_with(kMisbehaving, "wrong_value", {"--cases", "5"});
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_SAYS(ran.out, "not minimized: ");
  EXPECT_SAYS(ran.out, "replay        kverify replay ");
  EXPECT_SAYS(ran.out, "processor ");
}

TEST_F(CliTest, ACampaignGoesOnWhereItStoppedAndIsTriaged) {
  const std::string dir = folder_ + "/campaign";
  const RunSetup wrong = {.environment = {{"KVERIFY_TEST_FAULT", "wrong_value"}}};
  const auto fuzz = [&](const char* cases, const char* seed) {
    return run_kverify({"fuzz", "--dir", dir, "--jobs", "2", "--cases", cases, "--seed", seed,
                        "--plugin", kMisbehaving},
                       wrong);
  };
  Ran ran = fuzz("6", "1");
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  ran = fuzz("12", "1");
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "6 cases so far");
  EXPECT_SAYS(ran.out, "12 cases of the campaign");
  EXPECT_EQ(fuzz("12", "2").status, 2);  // another campaign
  ran = run_kverify({"triage", dir, "--runs", "1", "--plugin", kMisbehaving}, wrong);
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "[always]");
  ran = run_kverify({"triage", dir, "--runs", "1", "--plugin", kHost});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "does not fail  [never]");
}

TEST_F(CliTest, ACampaignWithoutFindingsSaysSo) {
  const std::string dir = folder_ + "/quiet", page = folder_ + "/quiet.html";
  Ran ran = run_kverify(
      {"fuzz", "--dir", dir, "--jobs", "1", "--cases", "4", "--seed", "1", "--plugin", kHost});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  ran = run_kverify({"triage", dir, "--plugin", kHost});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "0 findings, 0 faults");
  ran = run_kverify({"report", dir, "-o", page, "--plugin", kHost});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, ": no findings");
  EXPECT_TRUE(fs::exists(page));
  EXPECT_EQ(run_kverify({"triage", folder_ + "/nothing_here", "--plugin", kHost}).status, 2);
}

// Fails when a case is blamed, and set aside, for a machine on which no worker can start.
TEST_F(CliTest, ACampaignWhoseWorkersCannotStartEndsAndBlamesNoCase) {
  const std::string dir = folder_ + "/campaign";
  const std::vector<std::string> words = {"fuzz", "--dir",  dir, "--jobs",   "1",  "--cases",
                                          "4",    "--seed", "1", "--plugin", kHost};
  ASSERT_EQ(run_kverify(words).status, 0);
  {  // as a campaign leaves it that was killed within its fifth case
    auto state = CampaignState::open(dir + "/state");
    ASSERT_TRUE(state.ok());
    EXPECT_EQ(state->claim({.worker = 0, .workers = 1}), 4u);
  }
  const Ran ran = run_kverify(words, {.environment = {{"TMPDIR", folder_ + "/nowhere"}}});
  EXPECT_EQ(ran.status, 3) << ran.out << ran.err;
  EXPECT_SAYS(ran.err, "before it could run a case");
  EXPECT_SAYS(ran.err, "/nowhere");
  EXPECT_FALSE(fs::exists(dir + "/incubating"));
  EXPECT_EQ(run_kverify(words).status, 0);  // the case waited
}

// Fails when one damaged file hides all other findings, or is not told of.
TEST_F(CliTest, TriageTellsOfWhatItCannotRead) {
  const std::string dir = folder_ + "/findings", json = folder_ + "/triage.json";
  fs::create_directories(dir + "/crashing");
  ASSERT_TRUE(save_case(dir + "/crashing/whole.json", small_case()).ok());
  std::ofstream(dir + "/crashing/half.json") << "{\"schema\"";
  std::ofstream(dir + "/crashing/old.json.damaged") << "{";
  const Ran ran =
      run_kverify({"triage", dir, "--runs", "1", "--plugin", kMisbehaving, "--json", json},
                  {.environment = {{"KVERIFY_TEST_FAULT", "wrong_value"}}});
  EXPECT_EQ(ran.status, 2) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "2 findings, 1 faults as far as known");
  EXPECT_SAYS(ran.out, "[always]");
  EXPECT_SAYS(ran.out, "not read: " + dir + "/crashing/half.json: ");
  EXPECT_SAYS(ran.out, "1 damaged findings that the campaign set aside");
  std::ifstream file(json);
  EXPECT_EQ(nlohmann::json::parse(file)["not_read"].size(), 1u);
}

TEST_F(CliTest, ExplainSaysWhatItDoesNotKnow) {
  const Ran ran = run_kverify(
      {"explain", stored("small.json", small_case()), "--cases", "2", "--plugin", kMisbehaving},
      {.environment = {{"KVERIFY_TEST_FAULT", "wrong_value"}}});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "The fault is not known");
}

TEST_F(CliTest, ExplainRefusesWhatItCannotRead) {
  Case c = small_case();
  c.engine.emplace();  // which that plugin does not have
  const Ran ran = run_kverify({"explain", stored("engine.json", c), "--plugin", kMisbehaving});
  EXPECT_EQ(ran.status, 2) << ran.out << ran.err;
  EXPECT_SAYS(ran.err, "expected a case that fails, got unsupported");
}

}  // namespace
}  // namespace kv::cli
