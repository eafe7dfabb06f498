// The score counts what was infected and is not judged equivalent; survivors are listed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "harness/mutant/machine_report.h"

namespace kv {
namespace {

MachineResult result(bool infected, const std::string& killer) {
  MachineResult r;
  r.kernel = "void attend_decode_kernel<float>(Params)";
  r.source = "attend_warp.cuh:12";
  r.op = "constant";
  r.before = "add.s32 a, b, 1";
  r.after = "add.s32 a, b, 2";
  r.reached = true;
  r.infected = infected;
  r.killer = killer;
  return r;
}

TEST(MachineReport, TheScoreIsOfTheInfected) {
  MachineReport report;
  EXPECT_EQ(report.score(), 1);
  report.results = {result(true, "interval/output-value"), result(true, ""), result(false, "")};
  EXPECT_EQ(report.score(), 0.5);
  const std::string text = machine_text(report);
  EXPECT_NE(text.find("reached, infected, not propagated"), std::string::npos) << text;
}

TEST(MachineReport, AJudgementTakesOnlyWhatItNames) {
  MachineReport report;
  report.results = {result(true, "device/race"), result(true, "")};
  report.judgements = {{.source = "elsewhere.cuh:12", .because = "no"}};
  EXPECT_EQ(report.score(), 0.5);
  report.judgements = {{.source = "attend_warp.cuh:12", .op = "constant", .because = "a hint"}};
  EXPECT_EQ(report.score(), 1);
  EXPECT_NE(machine_text(report).find("equivalent, because a hint"), std::string::npos);
}

TEST(MachineReport, ResultsRoundTripAndNonsenseIsRefused) {
  const MachineResult r = result(true, "device/race");
  const auto back = result_from_json(to_json(r));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(to_json(*back), to_json(r));
  EXPECT_FALSE(result_from_json(nlohmann::json::object()).ok());
  EXPECT_FALSE(result_from_json(nlohmann::json::array({1})).ok());
}

TEST(MachineReport, FactsRoundTripAndNonsenseIsRefused) {
  const auto back =
      facts_from_json(to_json(ShardFacts{.mutations = 3, .executed = 2, .chosen = 1}));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->mutations, 3u);
  EXPECT_EQ(back->executed, 2u);
  EXPECT_EQ(back->chosen, 1u);
  EXPECT_FALSE(facts_from_json(nlohmann::json{{"chosen", "x"}}).ok());
  EXPECT_FALSE(facts_from_json(nlohmann::json::array({1})).ok());
}

TEST(Judgements, AreReadOrRefused) {
  const std::string path = testing::TempDir() + "/judgements-" + std::to_string(getpid()) + ".json";
  std::ofstream(path) << R"([{"source": "a.cu:1", "equivalent_because": "so"}])";
  const auto read = read_judgements(path);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->at(0).because, "so");
  std::ofstream(path) << R"([{"source": "a.cu:1"}])";
  EXPECT_FALSE(read_judgements(path).ok());
  std::ofstream(path) << "{";
  EXPECT_FALSE(read_judgements(path).ok());
}

}  // namespace
}  // namespace kv
