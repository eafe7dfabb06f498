// Purpose: runs a program of the user's and waits for its end.
// Contract: a program that goes on for ten seconds after its time limit hangs by itself (kernels
// are stopped at the limit by the device) and is killed with all that it started. Bad input when it
// cannot be run. Example:
//   Result<Ending> ending = run_program("./a.out", {"./a.out", "7"}, {"HOME=/root"}, 600);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/core/result.h"

namespace kv::cli {

struct Ending {
  int status = 0;        // as a shell gives it
  int signal = 0;        // that ended it; 0: none
  bool stopped = false;  // by us, long after the time limit
};

/// `arguments` begin with the program's own name. `time_limit_s` 0: it may run for ever.
Result<Ending> run_program(const std::string& program, std::vector<std::string> arguments,
                           std::vector<std::string> environment, uint64_t time_limit_s);

}  // namespace kv::cli
