// Purpose: runs cases in worker processes, one process after another, and loses none of them.
// Contract: a case is a file on disk before a worker sees it. submit() queues; next() gives the
// events of the submitted cases in order: the observations of a case, then its RunEnd. A worker
// that crashes, hangs, exits or eats memory gives the case that it ran a RunEnd that says so, and a
// fresh worker takes the rest. A process is replaced after process_cases_max cases; history() says
// which cases the process of the last ended case had run before it.
// Not thread safe. Errors: the worker cannot be started (environment), the plugin cannot be loaded
// (bad input).
// Example:
//   KV_ASSIGN_OR_RETURN(auto runner, CaseRunner::start(options));
//   runner.submit(c);
//   for (;;) { KV_ASSIGN_OR_RETURN(auto event, runner.next()); ... }
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "harness/case/case.h"
#include "harness/core/result.h"
#include "harness/plugin/runtime.h"
#include "harness/plugin/worker_process.h"
#include "harness/run/observation.h"
#include "harness/run/start_worker.h"
#include "harness/run/wire.h"

namespace kv {

/// silence_max: see silence_limit().
struct RunnerOptions : WorkerStart {
  std::string folder;                              // for the files of running cases; must exist
  uint32_t process_cases_max = 1024;               // then a fresh process is started
  const std::atomic<bool>* interrupted = nullptr;  // true: next() gives up with kTimeLimit
};

/// The time that one call into the plugin may take: silence_max, and more for large cases, since
/// the CPU device is slow.
std::chrono::milliseconds silence_limit(const Case& c, std::chrono::milliseconds silence_max);

class CaseRunner {
 public:
  using Event = std::variant<OpObservation, RunEnd>;

  static Result<CaseRunner> start(RunnerOptions options);
  CaseRunner(CaseRunner&&) noexcept;
  CaseRunner& operator=(CaseRunner&&) noexcept;
  ~CaseRunner();

  const Hello& hello() const;
  Result<void> submit(const Case& c);
  /// Cases submitted whose RunEnd has not been returned yet.
  size_t pending() const;
  /// pending() must not be 0.
  Result<Event> next();
  /// Cases that no worker has seen yet will run in a fresh process: what a case may have damaged
  /// does not reach them.
  void refresh();
  /// Cases that ran before the one whose RunEnd came last, in the same process, oldest first.
  std::vector<Case> history() const;

 private:
  explicit CaseRunner(RunnerOptions options);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kv
