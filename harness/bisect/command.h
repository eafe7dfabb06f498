// Purpose: runs a program to its end, with a limit.
// Contract: the program gets no standard input, and a process group of its own, which is killed
// when the time is up or `interrupted` becomes true. What it writes, to either stream, is kept up
// to kOutputBytes, the last of it. Variables that git sets for its hooks are taken out: they would
// name another repository.
// Example: const CommandEnd end = run_command({.words = {"git", "status"}, .folder = "repo"});
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

namespace kv {

inline constexpr size_t kOutputBytes = 1 << 16;

struct Command {
  std::vector<std::string> words;  // the program, found on PATH, and its arguments
  std::string folder = ".";
  double seconds = 60;
  const std::atomic<bool>* interrupted = nullptr;
};

struct CommandEnd {
  int status = -1;  // exit code; 128 + signal; -1: it could not be started
  bool timed_out = false, interrupted = false;
  std::string output;
  bool ok() const { return status == 0; }
  /// The last line that says something, printable, at most 200 bytes.
  std::string last_line() const;
};

CommandEnd run_command(const Command& command);

}  // namespace kv
