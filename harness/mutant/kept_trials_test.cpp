// What was tried is not tried again, and only what was tried in the same way counts.
#include "harness/mutant/kept_trials.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/mutant/kill_table.h"

namespace kv {
namespace {

const TrialKey kKey{.bug = "1_x", .patch = "aa", .plugin = "bb", .kverify = "cc", .seed = 7};
const Trial kTrial{.end = TrialEnd::kKilled,
                   .killer = "device/race",
                   .cases = 3,
                   .seconds = 0.5,
                   .killers = {{"device/race", 1}}};

std::string fresh(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  std::remove(path.c_str());
  return path;
}

TEST(KeptTrials, KeepsWhatWasTriedAndNothingElse) {
  const std::string path = fresh("ledger.jsonl");
  {
    auto ledger = KeptTrials::open(path);
    ASSERT_TRUE(ledger.ok());
    EXPECT_FALSE((*ledger)->find(kKey).has_value());
    ASSERT_TRUE((*ledger)->add(kKey, kTrial).ok());
    TrialKey broken = kKey;
    broken.seed = 9;
    ASSERT_TRUE((*ledger)->add(broken, Trial{}).ok());
  }
  std::ofstream(path, std::ios::app) << "{\"bug\": \"2_";  // cut off
  auto ledger = KeptTrials::open(path);
  ASSERT_TRUE(ledger.ok()) << ledger.error().message;
  const auto known = (*ledger)->find(kKey);
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->killer, kTrial.killer);
  EXPECT_EQ(known->killers, kTrial.killers);
  TrialKey other = kKey;
  other.seed = 9;
  EXPECT_FALSE((*ledger)->find(other).has_value()) << "a broken trial";
  other = kKey;
  other.seconds = 60;
  EXPECT_FALSE((*ledger)->find(other).has_value()) << "it survived a smaller budget";
  for (std::string TrialKey::*member :
       {&TrialKey::bug, &TrialKey::patch, &TrialKey::plugin, &TrialKey::kverify}) {
    other = kKey;
    other.*member += "x";
    EXPECT_FALSE((*ledger)->find(other).has_value());
  }
}

TEST(KeptTrials, RefusesAnotherFile) {
  const std::string path = fresh("other.json");
  std::ofstream(path) << "{\"a\": 1}\n";
  EXPECT_FALSE(KeptTrials::open(path).ok());
  EXPECT_FALSE(KeptTrials::open(testing::TempDir()).ok());
}

TEST(KillTable, ReplacesTheLinesOfWhatRanAndDropsWhatIsGone) {
  const std::string path = fresh("killed.json");
  const auto bug = [](const std::string& name) {
    return PlantedBug{.name = name, .expect = "killed", .hash = name + "-hash"};
  };
  const auto written = [&] {
    std::ifstream file(path);
    return nlohmann::json::parse(file);
  };
  const std::vector<PlantedBug> two = {bug("1_x"), bug("2_y")};
  ASSERT_TRUE(update_kill_table(path, two, {{two[0], {kTrial}}, {two[1], {kTrial}}}).ok());
  Trial slow = kTrial;
  slow.seconds = 4;
  ASSERT_TRUE(update_kill_table(path, two, {{two[1], {kTrial, slow}}}).ok());
  nlohmann::json lines = written();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["cpu_seconds_worst"], 0.5);
  EXPECT_EQ(lines[1]["cpu_seconds_worst"], 4);
  EXPECT_EQ(lines[1]["seeds"], 2);
  ASSERT_TRUE(update_kill_table(path, {two[1]}, {}).ok());
  EXPECT_EQ(written().size(), 1u);
  std::ofstream(path) << "{}";
  EXPECT_FALSE(update_kill_table(path, two, {}).ok());
}

}  // namespace
}  // namespace kv
