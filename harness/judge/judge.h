// Purpose: draws the verdict of one case from what a worker saw, operation by operation.
// Contract: add() takes the observations in the order of the case's operations; nothing of an
// observation is trusted: sizes, indices and names are checked before use, and a malformed one is a
// finding of its own. The stages and their order: README.md; the first that fails decides.
// A pure function of case, options and observation: the same on every machine, with and without
// AVX2. kFail at stage kInterval has been recomputed with MPFR before it is returned.
// Example:
//   Judge judge(c, {});
//   judge.begin(observation.plugin);
//   for (const OpObservation& op : observation.ops) judge.add(op);
//   Verdict verdict = judge.finish(observation.end);
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/judge/error_distribution.h"
#include "harness/judge/estimate_memo.h"
#include "harness/judge/suppressions.h"
#include "harness/judge/verdict.h"
#include "harness/run/observation.h"

namespace kv {

struct JudgeOptions {
  /// Fraction of the query rows whose values are judged, 0..1; which ones is a pure function of the
  /// case. Contract and provenance always see everything. Rows left out are counted in the stats.
  double sample_rows = 1.0;
  /// Multiply-adds that may be spent on rows of which every element has to be asked under B2 (the
  /// rounding of P is declared), at twenty times the cost. Rows are taken in order until it is
  /// spent.
  uint64_t profile_work = uint64_t{1} << 22;
  /// Leaks of device memory fail the case (otherwise they are listed only).
  bool leaks_fail = false;
  /// Findings of the device that are accepted: they are counted, and fail no case.
  std::vector<Suppression> suppressions = {};
  /// Where the error of every judged element is counted, besides; nullptr: nowhere. It must outlive
  /// the judge.
  ErrorDistribution* distribution = nullptr;
  /// What the double tier found for another case, and takes note of for another case; nullptr:
  /// everything is computed. It must outlive the judge.
  EstimateMemo* estimates = nullptr;
};

class Judge {
 public:
  /// The case must have passed Timeline::create; one that did not gives the verdict kError.
  Judge(const Case& c, JudgeOptions options);
  ~Judge();
  Judge(Judge&&) noexcept;
  Judge& operator=(Judge&&) noexcept;

  void begin(const PluginFacts& facts);
  /// The observation of the next operation. Ignored once decided().
  void add(const OpObservation& observation);
  /// True when a failure has been found: the caller may end the worker.
  bool decided() const;
  /// The verdict; the judge is spent afterwards.
  Verdict finish(const RunEnd& end);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// begin, add and finish over a complete observation.
Verdict judge_observation(const Case& c, const Observation& observation, JudgeOptions options = {});

}  // namespace kv
