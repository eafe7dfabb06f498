// A repository made here, whose build copies plugins of the tests: the commit that broke the case
// is named, whatever does not build around it. A wrong commit, a touched working tree, or a search
// without end makes it fail.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/bisect/command.h"
#include "harness/cli/testing/cli_fixture.h"

namespace kv::cli {
namespace {

class BisectTest : public CliTest {
 protected:
  BisectTest() {
    fs::create_directories(repo());
    git({"init", "--quiet", "."});
    write(".gitignore", "plugin.so\n");
  }

  std::string repo() const { return folder_ + "/repo"; }
  std::string git(const std::vector<std::string>& words) const {
    std::vector<std::string> all = {"git", "-c", "user.name=t", "-c",
                                    "user.email=t@example.invalid"};
    all.insert(all.end(), words.begin(), words.end());
    const CommandEnd end = run_command({.words = all, .folder = repo()});
    EXPECT_TRUE(end.ok()) << end.output;
    return end.last_line();
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(repo() + "/" + name) << text;
  }
  /// A commit whose build is `build`; returns its id.
  std::string commit(const std::string& subject, const std::string& build) const {
    write("build.sh", "# " + subject + "\n" + build + "\n");
    git({"add", "-A"});
    git({"commit", "--quiet", "-m", subject});
    return git({"rev-parse", "HEAD"});
  }
  std::string right(const std::string& subject) const {
    return commit(subject, "cp '" + kHost + "' plugin.so");
  }
  std::string wrong(const std::string& subject) const {
    return commit(subject, "cp '" + kMisbehaving + "' plugin.so");
  }
  Ran bisect(const std::string& good, const std::string& bad,
             const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {
        "bisect",  good,          bad,        stored("case.json", small_case()),
        "--build", "sh build.sh", "--plugin", "plugin.so",
        "--repo",  repo(),        "--json",   folder_ + "/bisect.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_kverify(arguments, {.environment = {{"KVERIFY_TEST_FAULT", "wrong_value"}}});
  }
  nlohmann::json json() const {
    std::ifstream file(folder_ + "/bisect.json");
    return nlohmann::json::parse(file);
  }
};

TEST_F(BisectTest, NamesTheCommitThatBrokeTheCase) {
  const std::string good = right("first");
  for (const char* subject : {"second", "third", "fourth"}) right(subject);
  const std::string culprit = wrong("the \x01 culprit");
  for (const char* subject : {"sixth", "seventh"}) wrong(subject);
  write("untracked.txt", "mine");
  write("build.sh", "changed, not committed");
  const Ran ran = bisect(good, "HEAD");
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "first bad commit: " + culprit + " the ? culprit");
  EXPECT_EQ(json()["first_bad"].size(), 1u);
  EXPECT_EQ(json()["first_bad"][0]["commit"], culprit);
  EXPECT_LE(json()["steps"].size(), 5u);  // two ends, and the logarithm of five
  EXPECT_SAYS(json()["fault"].get<std::string>(), "values");
  // The user's tree is as it was.
  EXPECT_EQ(git({"worktree", "list", "--porcelain"}), git({"worktree", "list", "--porcelain"}));
  EXPECT_EQ(run_command({.words = {"git", "status", "--porcelain"}, .folder = repo()}).output,
            " M build.sh\n?? untracked.txt\n");
  EXPECT_EQ(
      run_command({.words = {"git", "worktree", "list"}, .folder = repo()}).output.find('\n') + 1,
      run_command({.words = {"git", "worktree", "list"}, .folder = repo()}).output.size());
}

TEST_F(BisectTest, SkipsWhatDoesNotBuildOrFailsOtherwise) {
  const std::string good = right("first");
  right("second");
  commit("does not compile", "echo no such kernel >&2; exit 3");
  const std::string culprit = wrong("culprit");
  commit("crashes when loaded", "cp '" + kPlugins + "libno_plugin.so' plugin.so");
  commit("builds nothing", "true");
  wrong("last");
  const Ran ran = bisect(good, "HEAD");
  EXPECT_TRUE(ran.status == 0 || ran.status == 5) << ran.out << ran.err;
  const nlohmann::json suspects = json()["first_bad"];
  const bool named = std::any_of(suspects.begin(), suspects.end(),
                                 [&](const auto& one) { return one["commit"] == culprit; });
  EXPECT_TRUE(named) << ran.out;
  EXPECT_LE(suspects.size(), 2u) << ran.out;  // it or the one before, which was skipped
}

TEST_F(BisectTest, GoesOnWithWhatWasKept) {
  const std::string good = right("first");
  right("second");
  wrong("third");
  wrong("fourth");
  const std::vector<std::string> keep = {"--keep", folder_ + "/steps.jsonl"};
  ASSERT_EQ(bisect(good, "HEAD", keep).status, 0);
  std::ofstream(folder_ + "/steps.jsonl", std::ios::app) << "{\"torn";
  const Ran again = bisect(good, "HEAD", keep);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_SAYS(again.out, "fourth (as kept): fails");
  EXPECT_EQ(again.out.find("third: "), std::string::npos) << again.out;
  // What was tried with all checks says nothing of a search with fewer.
  std::vector<std::string> fewer = keep;
  fewer.insert(fewer.end(), {"--checks", "race"});
  const Ran other = bisect(good, "HEAD", fewer);
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_EQ(other.out.find("as kept"), std::string::npos) << other.out;
}

TEST_F(BisectTest, RefusesEndsThatAreNone) {
  const std::string good = right("first"), bad = wrong("second");
  EXPECT_EQ(bisect(bad, good).status, 2);
  EXPECT_SAYS(bisect(good, good).err, "expected a commit in which the case fails");
  EXPECT_SAYS(bisect(bad, bad).err, "expected a commit in which the case passes");
  EXPECT_SAYS(bisect("nowhere", bad).err, "expected a commit of");
  EXPECT_SAYS(bisect("--all", bad).err, "");
  EXPECT_EQ(bisect("--output=x", bad).status, 2);
  EXPECT_EQ(bisect(good, bad, {"--repo", folder_ + "/none"}).status, 2);
  for (const char* plugin : {"/plugin.so", "../plugin.so", "a/../../plugin.so", "folder/", "."})
    EXPECT_EQ(bisect(good, bad, {"--plugin", plugin}).status, 2) << plugin;
  std::ofstream(folder_ + "/steps.jsonl") << "another file\n";
  EXPECT_EQ(bisect(good, bad, {"--keep", folder_ + "/steps.jsonl"}).status, 2);
}

TEST_F(BisectTest, ABuildThatHangsIsSkipped) {
  const std::string good = right("first"), bad = wrong("second");
  commit("hangs", "sleep 60 & sleep 60");
  const Ran ran = bisect(good, "HEAD", {"--build-seconds", "0.3"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_SAYS(ran.err, "does not build (too slow)");
}

}  // namespace
}  // namespace kv::cli
