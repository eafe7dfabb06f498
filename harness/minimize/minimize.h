// Purpose: makes a failing case as small as it gets while it fails in the same way.
// Contract: what "the same way" means is the caller's: `fails(candidate)` says whether the
// candidate still shows the pinned fingerprint. Candidates are lawful cases only. Bounded by
// attempts and by time, whichever ends first; the best case so far is handed to `keep` the moment
// it is found, so an interrupted run loses nothing. With the same answers, and while time does not
// run out, the result is a pure function of the case. The case's name, comment and digest are kept
// out of it: the result's digest is empty. Source: Zeller and Hildebrandt, Simplifying and
// isolating failure-inducing input (TSE 2002). Example:
//   Result<Minimized> m = minimize(c, {.fails = again, .keep = store}, {.attempts_max = 500});
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "harness/case/case.h"
#include "harness/core/result.h"

namespace kv {

struct MinimizeLimits {
  uint64_t attempts_max = 5000;  // candidates that were run
  std::chrono::milliseconds time_max = std::chrono::seconds(60);
};

struct MinimizeHooks {
  std::function<Result<bool>(const Case&)> fails;
  std::function<Result<void>(const Case&)> keep = {};
};

struct Minimized {
  Case c;
  uint64_t attempts = 0, accepted = 0;
  bool complete = false;  // no pass finds anything more; otherwise a limit ended it
};

/// An error is one of `fails` or `keep`: what was found before it has been kept.
Result<Minimized> minimize(const Case& from, const MinimizeHooks& hooks,
                           const MinimizeLimits& limits);

}  // namespace kv
