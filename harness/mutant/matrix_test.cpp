// A property is credited with what only it kills, and needs a reason when that is nothing.
#include "harness/mutant/matrix.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace kv {
namespace {

PlantedResult killed_by(const std::string& name, std::map<std::string, uint64_t> killers) {
  PlantedResult result;
  result.bug.name = name;
  result.bug.expect = "killed";
  result.trials = {{.end = TrialEnd::kKilled, .killers = std::move(killers)}};
  return result;
}

const std::vector<PlantedResult> kResults = {
    killed_by("1_x", {{"interval/output-value", 3}, {"metamorphic/relation:alone (history)", 1}}),
    killed_by("2_y", {{"device/device:race", 1}})};

TEST(KillMatrix, CreditsWhatOnlyOnePropertyKills) {
  const KillMatrix matrix =
      kill_matrix(kResults, {"relation:pages"},
                  {{"relation:pages", "so"}, {"values", "so"}, {"relation:alone", "so"}});
  EXPECT_TRUE(matrix.faults.empty()) << matrix.faults.front();
  EXPECT_EQ(matrix.rows.at("device:race").only.size(), 1u);
  EXPECT_TRUE(matrix.rows.at("values").only.empty());
  EXPECT_EQ(matrix.rows.at("relation:alone").kills.count("1_x"), 1u);
  EXPECT_EQ(matrix.rows.at("relation:pages").kills.size(), 0u);
  EXPECT_EQ(matrix_json(matrix)["relation:pages"]["because"], "so");
}

TEST(KillMatrix, APropertyHasOneSpelling) {
  for (const auto& [killer, property] : std::map<std::string, std::string>{
           {"interval/output-value", "values"},
           {"exact/output-value (history)", "values"},
           {"contract/empty-row-lse", "contract"},
           {"provenance/damaged-slot", "provenance"},
           {"device/device:race", "device:race"},
           {"device/crash", "device:crash"},
           {"metamorphic/relation:pages (history)", "relation:pages"}})
    EXPECT_EQ(property_of(killer), property);
  EXPECT_EQ(engine_property_of("structure/reference-counts"), "engine:reference-counts");
  EXPECT_EQ(engine_property_of("metamorphic/twin:alone"), "engine:echo");
}

TEST(KillMatrix, ReportsWhatHasNoReasonAndReasonsForNothing) {
  const KillMatrix matrix = kill_matrix(kResults, {"relation:pages"}, {{"relation:gone", "so"}});
  EXPECT_EQ(matrix.faults.size(), 4u) << matrix_text(matrix);
}

TEST(KillMatrix, ReasonsAreReadOrRefused) {
  const std::string path = testing::TempDir() + "/reasons-" + std::to_string(getpid()) + ".json";
  std::ofstream(path) << R"({"relation:pages": "so"})";
  EXPECT_EQ(read_reasons(path)->at("relation:pages"), "so");
  std::ofstream(path) << R"({"relation:pages": 1})";
  EXPECT_FALSE(read_reasons(path).ok());
  std::ofstream(path) << "[]";
  EXPECT_FALSE(read_reasons(path).ok());
}

}  // namespace
}  // namespace kv
