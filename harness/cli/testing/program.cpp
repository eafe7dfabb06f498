#include "harness/cli/testing/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

namespace kv::cli {
namespace {

std::string read_and_remove(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  unlink(path.c_str());
  return text;
}

[[noreturn]] void become_kverify(const std::vector<std::string>& arguments, const RunSetup& setup,
                                 const std::string& out, const std::string& err) {
  for (const auto& [name, value] : setup.environment) setenv(name.c_str(), value.c_str(), 1);
  if (!setup.folder.empty() && chdir(setup.folder.c_str()) != 0) _exit(126);
  dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
  dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
  std::vector<char*> argv = {const_cast<char*>("kverify")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(KV_BUILD_DIR "/bin/kverify", argv.data());
  _exit(127);
}

}  // namespace

Ran run_kverify(const std::vector<std::string>& arguments, const RunSetup& setup) {
  static int count = 0;
  const char* tmp = std::getenv("TMPDIR");
  const std::string stem = std::string(tmp == nullptr ? "/tmp" : tmp) + "/cli_test-" +
                           std::to_string(getpid()) + "-" + std::to_string(count++);
  const pid_t child = fork();
  if (child == 0) become_kverify(arguments, setup, stem + ".out", stem + ".err");
  if (setup.interrupt_after_seconds > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(setup.interrupt_after_seconds));
    kill(child, SIGINT);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
          .out = read_and_remove(stem + ".out"),
          .err = read_and_remove(stem + ".err")};
}

}  // namespace kv::cli
