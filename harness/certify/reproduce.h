// Purpose: asks the code under test whether a case still fails in the same way.
// Contract: a candidate runs first in a worker that others have used; only what fails there runs
// again in a fresh process, and only that answer counts. The cases named in exec.preceding run
// before it, in the same process; they are read once, by the names of the original.
// Example:
//   KV_ASSIGN_OR_RETURN(auto again, Reproducer::start(bench, path, c));
//   KV_ASSIGN_OR_RETURN(const Reproduction r, again.rate(c, 3));
//   KV_ASSIGN_OR_RETURN(bool same, again.fails(candidate, *r.fingerprint));
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/certify/bench.h"
#include "harness/certify/examine.h"
#include "harness/certify/history_bench.h"
#include "harness/certify/run_folder.h"
#include "harness/judge/fingerprint.h"

namespace kv {

/// What several fresh processes made of one case.
struct Reproduction {
  uint32_t runs = 0, failed = 0;
  bool one_fault = true;                   // all that failed have the fingerprint below
  std::optional<Fingerprint> fingerprint;  // of the first that failed
  Examined examined;                       // the first that failed, else the last
  bool always() const { return failed == runs && one_fault; }
};

class Reproducer {
 public:
  /// `path`: where `c` came from; its preceding cases are named relative to it.
  static Result<Reproducer> start(const BenchOptions& bench, const std::string& path,
                                  const Case& c);

  Result<Reproduction> rate(const Case& c, uint32_t runs);
  Result<bool> fails(const Case& candidate, const Fingerprint& pinned);
  /// Candidates that failed once and not again.
  uint64_t unstable() const { return unstable_; }

 private:
  Result<std::vector<Case>> preceding(const Case& c) const;
  Result<Verdict> run(const Case& c);
  void refresh(const Case& c);

  BenchOptions bench_;
  JudgeOptions judging_;
  RunFolder folder_;
  std::optional<CaseRunner> runner_;
  std::optional<HistoryBench> histories_;
  std::map<std::string, Case> preceding_;
  uint64_t unstable_ = 0;
};

/// Runs the case of file `path` after those that it names; a finding once more, as every one that
/// is published.
Result<Examined> examine_again(const BenchOptions& bench, const std::string& path, const Case& c);

}  // namespace kv
