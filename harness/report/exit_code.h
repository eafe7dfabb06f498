// Purpose: the one number that a shell gets, and which one wins.
// Contract: precedence 3, 2, 1, 4, 5, 6, 7, 0: a broken environment explains everything else, a
// failure outweighs what merely did not run. Running out of a requested --minutes is no failure.
// Example: ExitCode code = worst(ExitCode::kFailed, ExitCode::kVacuous);  // kFailed
#pragma once

#include "harness/core/result.h"
#include "harness/judge/verdict.h"

namespace kv {

enum class ExitCode : int {
  kPass = 0,
  kFailed = 1,            // a property failed
  kBadInput = 2,          // usage, malformed or hostile input
  kEnvironment = 3,       // this machine lacks something
  kNondeterministic = 4,  // a finding did not come again
  kVacuous = 5,           // too little ran to say anything
  kTimeLimit = 6,
  kUnsupported = 7,  // everything was unsupported
};

ExitCode worst(ExitCode a, ExitCode b);
ExitCode exit_code_of(ErrorKind kind);
ExitCode exit_code_of(Outcome outcome);

}  // namespace kv
