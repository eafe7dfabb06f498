#include "harness/report/exit_code.h"

#include <algorithm>
#include <array>

namespace kv {

ExitCode worst(ExitCode a, ExitCode b) {
  constexpr std::array kPrecedence = {ExitCode::kEnvironment, ExitCode::kBadInput,
                                      ExitCode::kFailed,      ExitCode::kNondeterministic,
                                      ExitCode::kVacuous,     ExitCode::kTimeLimit,
                                      ExitCode::kUnsupported, ExitCode::kPass};
  const auto rank = [&](ExitCode code) {
    return std::find(kPrecedence.begin(), kPrecedence.end(), code) - kPrecedence.begin();
  };
  return rank(a) <= rank(b) ? a : b;
}

ExitCode exit_code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kBadInput:
      return ExitCode::kBadInput;
    case ErrorKind::kEnvironment:
      return ExitCode::kEnvironment;
    case ErrorKind::kUnsupported:
      return ExitCode::kUnsupported;
    case ErrorKind::kTimeLimit:
      return ExitCode::kTimeLimit;
  }
  return ExitCode::kEnvironment;
}

ExitCode exit_code_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
      return ExitCode::kPass;
    case Outcome::kFail:
      return ExitCode::kFailed;
    case Outcome::kNondeterministic:
      return ExitCode::kNondeterministic;
    case Outcome::kVacuous:
      return ExitCode::kVacuous;
    case Outcome::kUnsupported:
      return ExitCode::kUnsupported;
    case Outcome::kError:
      return ExitCode::kEnvironment;
  }
  return ExitCode::kEnvironment;
}

}  // namespace kv
