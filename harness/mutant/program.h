// Purpose: runs a kverify in a process of its own, to its end.
// Contract: waits; the program's output goes to `log`. Seconds are processor time of the process
// and of those that it waited for. Safe to call from several threads. Example:  const Ended ended =
// run_program({.arguments = {"doctor"}, .log = "doctor.log"});
#pragma once

#include <string>
#include <vector>

namespace kv {

struct Program {
  std::string executable = "/proc/self/exe";
  std::vector<std::string> arguments;
  std::vector<std::string> environment = {};  // "NAME=value", besides its own
  std::string log;
};

struct Ended {
  int status = -1;  // exit code; 128 + signal; -1: never started
  double seconds = 0;
};

Ended run_program(const Program& program);

}  // namespace kv
