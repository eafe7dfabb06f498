#include "harness/bisect/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace kv {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPollMs = 50;

[[noreturn]] void become(const Command& command, int output) {
  setpgid(0, 0);
  for (const char* name : {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX",
                           "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"})
    unsetenv(name);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  std::vector<char*> words;
  for (const std::string& word : command.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  if (chdir(command.folder.c_str()) == 0) execvp(words[0], words.data());
  _exit(127);
}

/// Takes what there is; false at the end of the stream.
bool take(int from, std::string& output) {
  char block[4096];
  const ssize_t got = read(from, block, sizeof block);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  output.append(block, static_cast<size_t>(got));
  if (output.size() > 2 * kOutputBytes) output.erase(0, output.size() - kOutputBytes);
  return true;
}

/// Reads until the program and all that hold its output have ended, or the limit is reached.
void watch(const Command& command, int from, CommandEnd& end) {
  const auto stop = Clock::now() + std::chrono::duration<double>(command.seconds);
  for (bool open = true; open;) {
    pollfd waiting{.fd = from, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, kPollMs) > 0) open = take(from, end.output);
    end.interrupted = command.interrupted != nullptr && *command.interrupted;
    end.timed_out = Clock::now() >= stop;
    if (end.interrupted || end.timed_out) return;
  }
}

}  // namespace

std::string CommandEnd::last_line() const {
  std::string line;
  for (size_t begin = 0; begin < output.size();) {
    const size_t end = std::min(output.find('\n', begin), output.size());
    if (output.find_first_not_of(" \t\r", begin) < end) line = output.substr(begin, end - begin);
    begin = end + 1;
  }
  if (line.size() > 200) line.resize(200);
  for (char& c : line)
    if (c < 0x20 || c > 0x7e) c = '?';
  return line;
}

CommandEnd run_command(const Command& command) {
  CommandEnd end;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return end;
  const pid_t child = fork();
  if (child == 0) become(command, ends[1]);
  close(ends[1]);
  if (child > 0) {
    setpgid(child, child);  // whoever is first
    watch(command, ends[0], end);
    if (end.timed_out || end.interrupted) kill(-child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    end.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  close(ends[0]);
  if (end.output.size() > kOutputBytes) end.output.erase(0, end.output.size() - kOutputBytes);
  return end;
}

}  // namespace kv
