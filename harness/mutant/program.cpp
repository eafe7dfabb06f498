#include "harness/mutant/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace kv {
namespace {

double seconds_of(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

/// posix_spawn takes char* that it does not write to.
std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

}  // namespace

Ended run_program(const Program& program) {
  std::vector<std::string> words = {"kverify"};
  words.insert(words.end(), program.arguments.begin(), program.arguments.end());
  std::vector<std::string> variables = program.environment;
  for (char** item = environ; *item != nullptr; ++item) variables.emplace_back(*item);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, program.log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.executable.c_str(), &actions, nullptr,
                                pointers(words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  rusage usage = {};
  if (error != 0 || wait4(pid, &status, 0, &usage) != pid) return {};
  return {.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
          .seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime)};
}

}  // namespace kv
