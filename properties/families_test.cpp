// The list of families, their files, what the files say of themselves, the table of kills and the
// readers' lists are of the same families. Fails when one of them was forgotten.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "harness/gen/draw_history.h"
#include "harness/history/finding.h"
#include "harness/history/testing/plain_engine.h"
#include "harness/history/twin.h"
#include "harness/relation/families/list.h"

namespace kv::props {
namespace {

namespace fs = std::filesystem;
const fs::path kRoot = KV_SOURCE_DIR;
const fs::path kFolder = kRoot / "harness/relation/families";

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return text.str();
}

/// The comment that a file opens with, as one line.
std::string contract_of(const std::string& family) {
  std::istringstream lines(text_of(kFolder / (family + ".cpp")));
  std::string line, contract;
  while (std::getline(lines, line) && line.starts_with("// ")) contract += line.substr(3) + " ";
  return contract;
}

/// What stands behind a key of the contract, up to the next one.
std::string clause(const std::string& contract, const std::string& key) {
  const size_t at = contract.find(key);
  if (at == std::string::npos) return "";
  const size_t from = at + key.size();
  const std::string rest = contract.substr(from);
  std::smatch next;
  const std::regex keys(" (Holds|Of|Kills): ");
  return std::regex_search(rest, next, keys) ? rest.substr(0, static_cast<size_t>(next.position(0)))
                                             : rest;
}

/// Numbers and names of planted bugs, "07_append_page_edge", in a text.
std::set<std::string> bugs_in(const std::string& text) {
  const std::regex bug("\\b[0-9]{2,3}_[a-z0-9_]+");
  return {std::sregex_token_iterator(text.begin(), text.end(), bug), std::sregex_token_iterator()};
}

bool is_planted(const std::string& bug) {
  return fs::exists(kRoot / "corpus/mutants" / (bug + ".patch"));
}

std::string with_dashes(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), ' ', '-');
  return out;
}

nlohmann::json matrix() {
  return nlohmann::json::parse(text_of(kRoot / "corpus/mutants/matrix.json"));
}

TEST(Families, TheListIsTheFolderAndEveryFileIsNamedAsItsRelation) {
  std::set<std::string> files, listed;
  for (const auto& entry : fs::directory_iterator(kFolder))
    if (entry.path().extension() == ".cpp") files.insert(entry.path().stem());
#define KV_LISTED(family)                    \
  EXPECT_EQ(families::family.name, #family); \
  listed.insert(#family);
  KV_FAMILIES(KV_LISTED)
#undef KV_LISTED
  EXPECT_EQ(files, listed);
  EXPECT_EQ(relations().size(), listed.size());
}

TEST(Families, EachFileOpensWithItsContract) {
  for (const Relation& relation : relations()) {
    const std::string name(relation.name), contract = contract_of(name);
    EXPECT_TRUE(contract.starts_with("Family " + name + ": ")) << contract;
    for (const char* key : {" Holds: ", " Of: ", " Kills: "})
      EXPECT_GE(clause(contract, key).size(), 8u) << name << ":" << key;
    const bool says_bits = clause(contract, " Holds: ").find("same bits") != std::string::npos;
    EXPECT_EQ(says_bits, relation.agreement == Agreement::kBits) << name;
  }
}

TEST(Families, WhatEachSaysThatItKillsIsWhatTheMatrixSays) {
  const nlohmann::json rows = matrix();
  for (const Relation& relation : relations()) {
    const std::string name(relation.name);
    const std::string kills = clause(contract_of(name), " Kills: ");
    const auto only = rows.at("relation:" + name).at("only").get<std::set<std::string>>();
    EXPECT_EQ(bugs_in(kills), only) << name;
    EXPECT_EQ(kills.starts_with("none alone; kept because "), only.empty())
        << name << ": " << kills;
  }
}

TEST(Families, EveryCheckOfHistoriesHasARowOfTheMatrix) {
  const nlohmann::json rows = matrix();
  for (int check = 0; check <= static_cast<int>(CheckClass::kEcho); ++check) {
    const std::string row = "engine:" + with_dashes(check_name(static_cast<CheckClass>(check)));
    EXPECT_TRUE(rows.contains(row)) << row;
  }
  for (const TwinRelation& twin : twin_relations()) {
    EXPECT_TRUE(is_planted(std::string(twin.finds))) << twin.name << ": " << twin.finds;
    const std::string patch =
        text_of(kRoot / "corpus/mutants" / (std::string(twin.finds) + ".patch"));
    EXPECT_NE(patch.find("\nTwin: " + std::string(twin.name) + ".\n"), std::string::npos)
        << twin.name;
  }
}

/// Who has the first word in each of some histories.
std::set<CheckClass> speakers(Fault fault, uint32_t unheard) {
  std::set<CheckClass> all;
  for (uint64_t i = 0; i < 60; ++i) {
    PhiloxSource choices(5, i);
    const Case c = draw_history(choices, {});
    PlainEngine engine(c, fault);
    const HistoryResult result = run_history(c, engine, {.unheard = unheard});
    if (result.finding) all.insert(result.finding->check);
  }
  return all;
}
uint32_t bit(CheckClass check) { return uint32_t{1} << static_cast<uint32_t>(check); }

// Fails when the matrix of histories would count a check that was passed over, or lose those
// behind.
TEST(Families, ACheckThatIsPassedOverLeavesTheWordToThoseBehindIt) {
  EXPECT_TRUE(speakers(Fault::kNoFence, 0).contains(CheckClass::kFence));
  EXPECT_FALSE(speakers(Fault::kNoFence, bit(CheckClass::kFence)).contains(CheckClass::kFence));
  const auto first = speakers(Fault::kLeakOnCancel, 0);
  ASSERT_FALSE(first.empty());
  uint32_t unheard = 0;
  for (const CheckClass check : first) unheard |= bit(check);
  const auto behind = speakers(Fault::kLeakOnCancel, unheard);
  EXPECT_FALSE(behind.empty());
  for (const CheckClass check : behind) EXPECT_FALSE(first.contains(check));
}

TEST(Families, ReadersListsNameAllOfThem) {
  const std::string readme = text_of(kRoot / "properties/README.md");
  for (const Relation& relation : relations())
    EXPECT_NE(readme.find("| `" + std::string(relation.name) + "` |"), std::string::npos)
        << relation.name;
  for (const TwinRelation& twin : twin_relations())
    EXPECT_NE(readme.find("`" + std::string(twin.name) + "`"), std::string::npos) << twin.name;
}

// Fails when a check of CHECKS.md has moved, or a bug that it names is planted no more.
TEST(Families, TheHomesOfTheChecksExist) {
  const std::string text = text_of(kRoot / "properties/CHECKS.md");
  const std::regex path("`([a-z_]+/[a-z_/.]+)`");
  size_t homes = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), path), end; at != end; ++at, ++homes)
    EXPECT_TRUE(fs::exists(kRoot / (*at)[1].str())) << (*at)[1];
  EXPECT_GE(homes, 35u);
  for (const std::string& bug : bugs_in(text)) EXPECT_TRUE(is_planted(bug)) << bug;
}

}  // namespace
}  // namespace kv::props
