// The planted bugs of this tree are whole, and the audit sees when they are not.
#include "harness/mutant/audit.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/relation/relation.h"

namespace kv {
namespace {

const std::string kFolder = KV_PLANTED_FOLDER;

std::vector<PlantedBug> planted() {
  const auto bugs = read_planted(kFolder);
  EXPECT_TRUE(bugs.ok()) << bugs.error().message;
  return bugs.ok() ? *bugs : std::vector<PlantedBug>();
}

TEST(Audit, ThisTreeIsWhole) {
  EXPECT_EQ(fmt::format("{}", fmt::join(class_faults(planted()), "\n")), "");
}

TEST(Audit, AClassWithTwoIsTooFew) {
  std::vector<PlantedBug> bugs = planted();
  size_t seen = 0;
  std::erase_if(
      bugs, [&](const PlantedBug& bug) { return bug.bug_class.starts_with("TIER") && ++seen > 2; });
  const auto faults = class_faults(bugs);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0], "class TIER: expected at least 3 planted bugs, got 2");
}

TEST(Audit, ANamedBugThatIsGoneIsMissed) {
  std::vector<PlantedBug> bugs = planted();
  std::erase_if(bugs, [](const PlantedBug& bug) { return bug.name == "114_triangle_flipped"; });
  ASSERT_EQ(class_faults(bugs).size(), 1u);
}

TEST(Audit, TheCommittedMatrixGivesEveryPropertyItsReason) {
  std::ifstream file(kFolder + "/matrix.json", std::ios::binary);
  const auto matrix = nlohmann::json::parse(file, nullptr, false);
  EXPECT_EQ(fmt::format("{}", fmt::join(matrix_faults(matrix, planted()), "\n")), "");
}

TEST(Audit, TheCommittedTableIsOfThesePatches) {
  std::ifstream file(kFolder + "/killed.json", std::ios::binary);
  const auto table = nlohmann::json::parse(file, nullptr, false);
  EXPECT_EQ(fmt::format("{}", fmt::join(table_faults(table, planted()), "\n")), "");
}

TEST(Audit, AMatrixThatIsNotWholeIsSeen) {
  const std::vector<PlantedBug> bugs = {{.name = "1_x"}, {.name = "2_y"}};
  nlohmann::json matrix;
  for (const Relation& relation : relations())
    matrix["relation:" + std::string(relation.name)] = {
        {"kills", {"1_x"}}, {"only", nlohmann::json::array()}, {"because", "so"}};
  EXPECT_EQ(matrix_faults(matrix, bugs).size(), 0u);
  EXPECT_EQ(matrix_faults(matrix, {}).size(), relations().size()) << "bugs that there are not";
  nlohmann::json other = matrix;
  other["relation:alone"].erase("because");
  EXPECT_EQ(matrix_faults(other, bugs).size(), 1u) << "no reason";
  other["relation:alone"]["only"] = {"1_x"};
  EXPECT_EQ(matrix_faults(other, bugs).size(), 1u) << "others kill it, too";
  other["relation:alone"]["kills"] = other["relation:alone"]["only"] = {"2_y"};
  EXPECT_EQ(matrix_faults(other, bugs).size(), 0u) << "a bug of its own is reason enough";
  other["relation:alone"]["only"] = nlohmann::json::array();
  other["relation:alone"]["because"] = "so";
  EXPECT_EQ(matrix_faults(other, bugs).size(), 1u) << "a bug of its own that is not told";
  other["relation:alone"]["only"] = {"2_y"};
  other["relation:alone"]["kills"] = nlohmann::json::array();
  EXPECT_EQ(matrix_faults(other, bugs).size(), 1u) << "alone, and not at all";
  matrix.erase("relation:pages");
  EXPECT_EQ(matrix_faults(matrix, bugs).size(), 1u) << "no row";
  matrix["relation:pages"] = 3;
  EXPECT_EQ(matrix_faults(matrix, bugs).size(), 1u) << "malformed";
}

TEST(Audit, TheTableMustBeOfThesePatches) {
  const PlantedBug bug{.name = "1_x", .expect = "killed", .hash = "aa"};
  nlohmann::json line = {
      {"bug", "1_x"},  {"patch", "aa"},    {"state", "killed"},       {"seeds", 5},
      {"killers", {}}, {"cases_worst", 1}, {"cpu_seconds_worst", 1.0}};
  const auto faults = [&](const nlohmann::json& one, std::vector<PlantedBug> bugs) {
    return table_faults(nlohmann::json::array({one}), bugs).size();
  };
  EXPECT_EQ(faults(line, {bug}), 0u);
  EXPECT_EQ(faults(line, {}), 1u) << "a line without a patch";
  EXPECT_EQ(table_faults(nlohmann::json::array(), {bug}).size(), 1u) << "a patch without a line";
  const nlohmann::json wrong = {{"patch", "ab"}, {"state", "SURVIVED 1 of 5 seeds"}, {"seeds", 4}};
  for (const auto& [key, value] : wrong.items()) {
    nlohmann::json other = line;
    other[key] = value;
    EXPECT_EQ(faults(other, {bug}), 1u) << key;
  }
  line["cpu_seconds_worst"] = 61.0;
  EXPECT_EQ(faults(line, {bug}), 2u) << "worst and median";
  line.erase("state");
  EXPECT_EQ(faults(line, {bug}), 1u) << "malformed";
}

}  // namespace
}  // namespace kv
