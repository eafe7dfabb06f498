#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "harness/campaign/ledger.h"
#include "harness/campaign/state.h"

namespace kv {
namespace {

std::string fresh(const char* name) {
  const std::string path = testing::TempDir() + "/campaign_test-" + std::to_string(getpid()) + name;
  std::filesystem::remove(path);
  return path;
}

TEST(Ledger, KeepsWholeLinesAndCutsATornOne) {
  const std::string path = fresh("ledger");
  Ledger::open(path).value().add({{"event", "done"}, {"case", 1}}).ok();
  std::ofstream(path, std::ios::app) << "{\"event\": \"do";
  EXPECT_EQ(*mend_ledger(path), 13u);
  EXPECT_EQ(*mend_ledger(path), 0u);
  Ledger::open(path).value().add({{"event", "done"}, {"case", 2}}).ok();
  const auto read = read_ledger(path);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->lines.size(), 2u);
  EXPECT_EQ(read->unreadable, 0u);
  EXPECT_EQ(read->lines[1]["case"], 2);
}

TEST(Ledger, CountsWhatIsNoObject) {
  const std::string path = fresh("rubbish");
  std::ofstream(path) << "{\"a\": 1}\nrubbish\n[1]\n";
  const auto read = read_ledger(path);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->lines.size(), 1u);
  EXPECT_EQ(read->unreadable, 2u);
}

TEST(CampaignState, GivesEveryNumberOnceAndTheUnfinishedAgain) {
  const std::string path = fresh("state");
  {
    CampaignState state = CampaignState::open(path).value();
    EXPECT_EQ(state.claim(0), 0u);
    EXPECT_EQ(state.claim(1), 1u);
    state.note_case(1, "the case");
    state.release(0);
    EXPECT_EQ(state.claim(0), 2u);
  }
  CampaignState again = CampaignState::open(path).value();
  EXPECT_EQ(again.running_case(1), "the case");
  EXPECT_EQ(again.claim(1), 1u);
  EXPECT_EQ(again.claim(0), 2u);
  EXPECT_EQ(again.claim(2), 3u);
  EXPECT_EQ(again.total(&CampaignSlot::done), 1u);
}

TEST(CampaignState, LosesNoNumberWhenWorkersAreKilled) {
  const std::string path = fresh("killed");
  const std::string ledger_path = fresh("killed-ledger");
  for (int round = 0; round < 20; ++round) {
    pid_t workers[2];
    for (uint32_t w = 0; w < 2; ++w) {
      workers[w] = fork();
      if (workers[w] != 0) continue;
      CampaignState state = CampaignState::open(path).value();
      Ledger ledger = Ledger::open(ledger_path).value();
      for (;;) {
        const uint64_t number = state.claim(w);
        if (!ledger.add({{"case", number}}).ok()) _exit(1);
        state.release(w);
      }
    }
    usleep(2000 + 137 * round);
    for (const pid_t w : workers) kill(w, SIGKILL);
    for (const pid_t w : workers) waitpid(w, nullptr, 0);
    EXPECT_EQ(*mend_ledger(ledger_path), 0u) << "a torn line";
  }
  CampaignState state = CampaignState::open(path).value();
  const auto read = read_ledger(ledger_path);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->unreadable, 0u);
  std::set<uint64_t> seen;
  for (const auto& line : read->lines) seen.insert(line["case"].get<uint64_t>());
  for (uint32_t w = 0; w < 2; ++w) {
    if (const auto left = state.unfinished(w)) seen.insert(*left);
  }
  EXPECT_GT(state.claimed(), 100u);
  for (uint64_t n = 0; n < state.claimed(); ++n) EXPECT_TRUE(seen.contains(n)) << n << " is lost";
}

TEST(CampaignState, RefusesAnotherFile) {
  const std::string path = fresh("other");
  std::ofstream(path) << "hello";
  EXPECT_EQ(CampaignState::open(path).error().kind, ErrorKind::kBadInput);
}

}  // namespace
}  // namespace kv
