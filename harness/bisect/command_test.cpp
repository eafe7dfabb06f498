// Fails when a program outlives its limit, its output is lost, or it sees a repository of the
// caller's.
#include "harness/bisect/command.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

namespace kv {
namespace {

CommandEnd shell(const std::string& script, double seconds = 30) {
  return run_command({.words = {"sh", "-c", script}, .seconds = seconds});
}

TEST(Command, GivesStatusAndOutputOfBothStreams) {
  const CommandEnd end = shell("echo one; echo two >&2; exit 7");
  EXPECT_EQ(end.status, 7);
  EXPECT_NE(end.output.find("one\n"), std::string::npos);
  EXPECT_NE(end.output.find("two\n"), std::string::npos);
  EXPECT_EQ(shell("kill -9 $$").status, 137);
  EXPECT_EQ(run_command({.words = {"no-such-program-of-all"}}).status, 127);
  EXPECT_EQ(run_command({.words = {"true"}, .folder = "/no/such/folder"}).status, 127);
}

TEST(Command, KeepsTheLastOfALongOutput) {
  const CommandEnd end = shell("i=0; while [ $i -lt 40000 ]; do echo line $i; i=$((i+1)); done");
  EXPECT_LE(end.output.size(), kOutputBytes);
  EXPECT_EQ(end.last_line(), "line 39999");
}

TEST(Command, LastLineIsPrintableAndShort) {
  EXPECT_EQ(shell("printf 'good\\n\\033[2J\\n \\n'").last_line(), "?[2J");
  EXPECT_EQ(shell("true").last_line(), "");
  EXPECT_EQ(shell("head -c 5000 /dev/zero | tr '\\0' x").last_line().size(), 200u);
}

TEST(Command, EndsWithTheTimeAndWithItsChildren) {
  const auto begin = std::chrono::steady_clock::now();
  const CommandEnd end = shell("sleep 50 & sleep 50", 0.2);
  EXPECT_TRUE(end.timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  const std::atomic<bool> stop = true;
  EXPECT_TRUE(run_command({.words = {"sleep", "50"}, .interrupted = &stop}).interrupted);
}

TEST(Command, SeesNoRepositoryOfTheCaller) {
  setenv("GIT_DIR", "/no/repository", 1);
  EXPECT_EQ(shell("echo \"[$GIT_DIR]\"").last_line(), "[]");
  unsetenv("GIT_DIR");
  EXPECT_EQ(shell("cat; echo read").last_line(), "read");
}

}  // namespace
}  // namespace kv
