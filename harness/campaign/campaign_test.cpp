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

// Fails when a writer that was killed within its line takes the next line of another one with it.
TEST(Ledger, FindsTheLineBehindATornOne) {
  const std::string path = fresh("glued");
  std::ofstream(path) << "{\"event\":\"case\",\"ca{\"event\":\"case\",\"case\":7}\n";
  const auto read = read_ledger(path);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->unreadable, 1u);
  ASSERT_EQ(read->lines.size(), 1u);
  EXPECT_EQ(read->lines[0]["case"], 7);
}

// Fails when two that were killed within write() hide the line of a third.
TEST(Ledger, FindsTheLineBehindTwoTornOnes) {
  const std::string path = fresh("glued_twice");
  std::ofstream(path) << R"({"event":"case","ca{"event":"do{"event":"case","case":7})"
                      << "\n"
                      << R"({"event":"case","ca)"
                      << "\n";
  const auto read = read_ledger(path);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->unreadable, 2u);
  ASSERT_EQ(read->lines.size(), 1u);
  EXPECT_EQ(read->lines[0]["case"], 7);
}

TEST(CampaignState, GivesEveryNumberOnceAndTheUnfinishedAgain) {
  const std::string path = fresh("state");
  {
    CampaignState state = CampaignState::open(path).value();
    EXPECT_EQ(state.claim({0, 2}), 0u);
    EXPECT_EQ(state.claim({1, 2}), 1u);
    state.note_case(1, "the case");
    state.release(0);
    EXPECT_EQ(state.claim({0, 2}), 2u);
  }
  CampaignState again = CampaignState::open(path).value();
  EXPECT_EQ(again.running_case(1), "the case");
  EXPECT_EQ(again.claim({1, 3}), 1u);
  EXPECT_EQ(again.claim({0, 3}), 2u);
  EXPECT_EQ(again.claim({2, 3}), 3u);
  EXPECT_EQ(again.total(&CampaignSlot::done), 1u);
}

// Fails when a campaign that goes on with fewer workers forgets what the others were running.
TEST(CampaignState, FewerWorkersFinishWhatMoreHaveLeft) {
  CampaignState state = CampaignState::open(fresh("fewer")).value();
  for (uint32_t w = 0; w < 5; ++w) EXPECT_EQ(state.claim({w, 5}), w);
  state.release(0);
  std::set<uint64_t> again;
  for (const uint32_t w : {0U, 1U, 0U, 1U}) {
    EXPECT_TRUE(state.is_waited_for({w, 2})) << w;
    again.insert(state.claim({w, 2}));
    state.release(w);
  }
  EXPECT_EQ(again, (std::set<uint64_t>{1, 2, 3, 4}));
  EXPECT_FALSE(state.is_waited_for({0, 2}) || state.is_waited_for({1, 2}));
  EXPECT_EQ(state.claim({1, 2}), 5u);
}

// A process may die within write(), which then has written a part: its number is still in its slot.
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
        const uint64_t number = state.claim({w, 2});
        if (!ledger.add({{"event", "done"}, {"case", number}}).ok()) _exit(1);
        state.release(w);
      }
    }
    usleep(2000 + 137 * round);
    for (const pid_t w : workers) kill(w, SIGKILL);
    for (const pid_t w : workers) waitpid(w, nullptr, 0);
    EXPECT_LT(*mend_ledger(ledger_path), std::string(R"({"event":"done","case":1234567})").size());
  }
  CampaignState state = CampaignState::open(path).value();
  const auto read = read_ledger(ledger_path);
  ASSERT_TRUE(read.ok());
  EXPECT_LE(read->unreadable, 20u);
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
