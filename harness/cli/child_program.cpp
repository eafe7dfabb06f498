#include "harness/cli/child_program.h"

#include <spawn.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

namespace kv::cli {
namespace {

constexpr std::chrono::seconds kGrace{10};  // after the time limit, to end by itself
constexpr std::chrono::milliseconds kPoll{10};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// How a process ended, if it has, or after waiting for it.
Result<bool> wait_for(pid_t pid, bool now, Ending* ending) {
  int status = 0;
  pid_t ended = -1;
  while ((ended = waitpid(pid, &status, now ? WNOHANG : 0)) < 0) {
    if (errno != EINTR) return environment_error(std::strerror(errno));
  }
  if (ended == 0) return false;
  ending->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ending->status = ending->signal ? 128 + ending->signal : WEXITSTATUS(status);
  return true;
}

/// The processes that are ours now: those whose parents have died.
std::vector<pid_t> children() {
  std::ifstream list("/proc/self/task/" + std::to_string(getpid()) + "/children");
  std::vector<pid_t> found;
  for (pid_t pid = 0; list >> pid;) found.push_back(pid);
  return found;
}

/// Kills a program with all that it started, also what its own parent can no longer be asked for.
void kill_whole(pid_t pid, Ending* ending) {
  kill(pid, SIGKILL);
  static_cast<void>(wait_for(pid, false, ending));
  for (std::vector<pid_t> rest; !(rest = children()).empty();) {
    for (const pid_t orphan : rest) {
      kill(orphan, SIGKILL);
      waitpid(orphan, nullptr, 0);
    }
  }
}

}  // namespace

Result<Ending> run_program(const std::string& program, std::vector<std::string> arguments,
                           std::vector<std::string> environment, uint64_t time_limit_s) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_t pid = -1;
  errno = posix_spawn(&pid, program.c_str(), nullptr, nullptr, pointers(arguments).data(),
                      pointers(environment).data());
  if (errno != 0) return bad_input("cannot run '" + program + "': " + std::strerror(errno));
  Ending ending;
  const auto limit = std::chrono::seconds(time_limit_s) + kGrace;
  const auto started = std::chrono::steady_clock::now();
  for (;;) {
    KV_ASSIGN_OR_RETURN(const bool ended, wait_for(pid, time_limit_s > 0, &ending));
    if (ended) return ending;
    if (std::chrono::steady_clock::now() - started >= limit) break;
    std::this_thread::sleep_for(kPoll);
  }
  kill_whole(pid, &ending);
  ending.stopped = true;
  return ending;
}

}  // namespace kv::cli
