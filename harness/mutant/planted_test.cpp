// Headers of patches are read whole or refused; a mutant that one seed lets live is not killed.
#include "harness/mutant/planted.h"

#include <gtest/gtest.h>

#include "harness/mutant/report.h"

namespace kv {
namespace {

const std::string kHeader =
    "Class: D, mask.\nChange: one\nmore line.\nOrigin: here.\nFound by: census.\n"
    "Sources: a.cu b.cpp\n";

TEST(Planted, ReadsTheHeader) {
  const auto bug = parse_planted("01_x", kHeader + "Expect: killed\n\n--- a/x\n");
  ASSERT_TRUE(bug.ok()) << bug.error().message;
  EXPECT_EQ(bug->change, "one more line.");
  EXPECT_EQ(bug->sources, "a.cu b.cpp");
  EXPECT_FALSE(bug->is_equivalent());
  EXPECT_TRUE(parse_planted("01_x", kHeader + "Expect: equivalent, because so\n")->is_equivalent());
}

TEST(Planted, OnlyTheChangeIsHashed) {
  const std::string expect = "Expect: killed\n\n";
  const auto hash = [&](const std::string& text) { return parse_planted("01_x", text)->hash; };
  const std::string one = hash(kHeader + expect + "--- a/x\n+1\n");
  EXPECT_EQ(one, hash("Level: engine\n" + kHeader + expect + "--- a/x\n+1\n"));
  EXPECT_NE(one, hash(kHeader + expect + "--- a/x\n+2\n"));
}

TEST(Planted, RefusesWhatIsMissingOrUnknown) {
  for (const std::string& text :
       {kHeader, kHeader + "Expect: perhaps\n", std::string("--- a/x\n"), std::string()}) {
    const auto bug = parse_planted("01_x", text);
    ASSERT_FALSE(bug.ok());
    EXPECT_NE(bug.error().message.find("01_x.patch"), std::string::npos);
  }
  EXPECT_FALSE(read_planted("/nonexistent").ok());
}

PlantedResult result(const std::string& expect, std::vector<TrialEnd> ends) {
  PlantedResult r;
  r.bug.name = "01_x";
  r.bug.expect = expect;
  r.bug.found_by = "the device stage.";
  for (const TrialEnd end : ends) r.trials.push_back({.end = end, .killer = "device/race"});
  return r;
}

TEST(PlantedReport, AnEnginesBugIsFoundByACheckThatItNames) {
  PlantedResult r = result("killed", {TrialEnd::kKilled});
  r.bug.level = "engine";
  r.bug.found_by = "reference counts or echo: of index entries.";
  const auto state = [&](const std::string& killer) {
    r.trials[0].killer = killer;
    return r.state();
  };
  EXPECT_EQ(state("structure/reference-counts"), "killed");
  EXPECT_EQ(state("metamorphic/twin:cold"), "killed");
  EXPECT_EQ(state("structure/index"), "FOUND BY ANOTHER CHECK");
  EXPECT_EQ(state("structure/leak (history)"), "FOUND BY ANOTHER CHECK");
}

TEST(PlantedReport, AKernelsBugIsFoundByAStageOrRelationThatItNames) {
  PlantedResult r = result("killed", {TrialEnd::kKilled});
  const auto state = [&](const std::string& found_by, const std::string& killer) {
    r.bug.found_by = found_by;
    r.trials[0].killer = killer;
    return r.state();
  };
  EXPECT_EQ(state("the value stages, with windows.", "exact/output-value"), "killed");
  EXPECT_EQ(state("the value stages, with windows.", "interval/lse-value (history)"), "killed");
  EXPECT_EQ(state("the value stages.", "device/race"), "FOUND BY ANOTHER CHECK");
  EXPECT_EQ(state("the relation layout only.", "metamorphic/relation:layout"), "killed");
  EXPECT_EQ(state("the relation layout only.", "metamorphic/relation:pages"),
            "FOUND BY ANOTHER CHECK");
  EXPECT_EQ(state("the value stages. No device check can.", "device/race"),
            "FOUND BY ANOTHER CHECK")
      << "behind the first sentence";
}

TEST(PlantedReport, OneSeedThatLetsItLiveIsASurvivor) {
  constexpr auto kKilled = TrialEnd::kKilled, kSurvived = TrialEnd::kSurvived;
  EXPECT_TRUE(result("killed", {kKilled, kKilled}).is_as_expected());
  EXPECT_FALSE(result("killed", {kKilled, kSurvived}).is_as_expected());
  EXPECT_FALSE(result("killed", {TrialEnd::kBroken}).is_as_expected());
  EXPECT_FALSE(result("killed", {}).is_as_expected());
  EXPECT_TRUE(result("equivalent, because so", {kSurvived}).is_as_expected());
  EXPECT_FALSE(result("equivalent, because so", {kKilled}).is_as_expected());
  const std::string text = planted_text({result("killed", {kKilled, kSurvived})});
  EXPECT_NE(text.find("SURVIVED 1 of 2 seeds"), std::string::npos) << text;
  EXPECT_NE(text.find("0 of 1 planted bugs killed"), std::string::npos) << text;
}

}  // namespace
}  // namespace kv
