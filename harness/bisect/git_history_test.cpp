// Fails when the search does not end at the first bad commit of a history with a merge and skipped
// commits, or when it leaves anything in the repository.
#include "harness/bisect/git_history.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace kv {
namespace {

namespace fs = std::filesystem;

class GitHistoryTest : public testing::Test {
 protected:
  GitHistoryTest() : folder_(testing::TempDir() + "/git_history-" + std::to_string(getpid())) {
    fs::create_directories(folder_ + "/repo");
    git({"init", "--quiet", "--initial-branch=main", "."});
  }
  ~GitHistoryTest() override { fs::remove_all(folder_); }

  CommandEnd git(std::vector<std::string> words) const {
    words.insert(words.begin(), {"git", "-c", "user.name=t", "-c", "user.email=t@example.invalid"});
    return run_command({.words = words, .folder = folder_ + "/repo"});
  }
  void commit(const std::string& subject) const {
    std::ofstream(folder_ + "/repo/file-" + subject) << subject;
    git({"add", "-A"});
    ASSERT_TRUE(git({"commit", "--quiet", "-m", subject}).ok());
  }
  GitHistory opened() const {
    auto history = GitHistory::open({.repository = folder_ + "/repo", .tree = folder_ + "/tree"});
    EXPECT_TRUE(history.ok()) << history.error().message;
    return std::move(history).value();
  }
  /// Subjects at the end; `marks`: by subject, the others are good.
  std::vector<std::string> searched(const std::string& good, const std::string& bad,
                                    const std::map<std::string, Mark>& marks) const {
    GitHistory history = opened();
    EXPECT_TRUE(history.start(*history.find(good), *history.find(bad)).ok());
    for (int step = 0; history.current() && step < 50; ++step) {
      const std::string subject = history.current()->subject;
      EXPECT_TRUE(subject == "merge" || fs::exists(folder_ + "/tree/file-" + subject)) << subject;
      std::ofstream(folder_ + "/tree/file-first") << "changed by the build";
      const auto mark = marks.find(subject);
      EXPECT_TRUE(history.mark(mark == marks.end() ? Mark::kGood : mark->second).ok());
    }
    std::vector<std::string> subjects;
    for (const Commit& found : history.found()) subjects.push_back(found.subject);
    return subjects;
  }

  std::string folder_;
};

TEST_F(GitHistoryTest, EndsAtTheFirstBadCommit) {
  for (const char* subject : {"first", "b", "c", "d", "e", "last"}) commit(subject);
  const std::map<std::string, Mark> marks = {
      {"d", Mark::kBad}, {"e", Mark::kBad}, {"last", Mark::kBad}};
  EXPECT_EQ(searched("HEAD~5", "main", marks), std::vector<std::string>({"d"}));
  EXPECT_FALSE(fs::exists(folder_ + "/tree"));
  EXPECT_EQ(git({"status", "--porcelain"}).output, "");
  EXPECT_EQ(git({"for-each-ref", "refs/bisect"}).output, "");
  EXPECT_FALSE(fs::exists(folder_ + "/repo/.git/worktrees"));
}

TEST_F(GitHistoryTest, SkippedOnesRemainSuspects) {
  for (const char* subject : {"first", "b", "c", "d", "last"}) commit(subject);
  const std::map<std::string, Mark> marks = {{"c", Mark::kSkip}, {"d", Mark::kBad}};
  auto found = searched("HEAD~4", "main", marks);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, std::vector<std::string>({"c", "d"}));
}

TEST_F(GitHistoryTest, FollowsAMerge) {
  commit("first");
  git({"checkout", "--quiet", "-b", "side"});
  commit("s1");
  commit("s2");
  git({"checkout", "--quiet", "main"});
  commit("m1");
  ASSERT_TRUE(git({"merge", "--quiet", "--no-ff", "-m", "merge", "side"}).ok());
  commit("merge");
  commit("last");
  const std::map<std::string, Mark> marks = {
      {"s2", Mark::kBad}, {"merge", Mark::kBad}, {"last", Mark::kBad}};
  EXPECT_EQ(searched("side~2", "main", marks), std::vector<std::string>({"s2"}));
}

TEST_F(GitHistoryTest, RefusesWhatIsNoCommitAndNoRepository) {
  commit("first");
  const GitHistory history = opened();
  for (const char* name : {"none", "", "--all", "-n1", "HEAD:file-first"})
    EXPECT_FALSE(history.find(name).ok()) << name;
  EXPECT_TRUE(history.find("main").ok());
  EXPECT_FALSE(GitHistory::open({.repository = folder_, .tree = folder_ + "/other"}).ok());
  EXPECT_FALSE(GitHistory::open({.repository = folder_ + "/x", .tree = folder_ + "/other"}).ok());
}

TEST_F(GitHistoryTest, RunsNoHooks) {
  commit("first");
  const std::string hook = folder_ + "/repo/.git/hooks/post-checkout";
  std::ofstream(hook) << "#!/bin/sh\ntouch " << folder_ << "/hook-ran\n";
  fs::permissions(hook, fs::perms::owner_all);
  { const GitHistory history = opened(); }
  EXPECT_FALSE(fs::exists(folder_ + "/hook-ran"));
}

}  // namespace
}  // namespace kv
