// Purpose: stages 4 and 5, every output and every LSE lies in its admissible interval.
// Contract: inputs are the bytes that the cache holds (checked by then) and the query rows of the
// data function. All query rows of a request that share a K/V head are computed together. A
// failure has been certified with MPFR. Stage kExact when the row's weights are certified exact.
#pragma once

#include <memory>
#include <optional>

#include "harness/judge/contract_stage.h"
#include "harness/judge/error_distribution.h"
#include "harness/judge/estimate_memo.h"
#include "harness/judge/failure.h"
#include "reference/attention.h"

namespace kv {

struct ValueOptions {
  double sample_rows = 1;
  uint64_t profile_work = 0;
  ErrorDistribution* distribution = nullptr;
  EstimateMemo* estimates = nullptr;  // nullptr: everything is computed
};

class ValueStage {
 public:
  explicit ValueStage(ValueOptions options) : options_(std::move(options)) {}
  /// Adds to `stats`. `view.pool` must be the image after the step.
  std::optional<Failure> judge(const StepView& view, const VisibleSets& visible,
                               VerdictStats& stats);

 private:
  ValueOptions options_;  // of the work: what is left
  reference::HeadEstimator estimator_;
};

/// The plugin's declaration in the terms of the error budget, under the weakest arithmetic of all
/// generations: a verdict then holds wherever the case runs, whatever exec.rounding is.
reference::Profile profile_of(const Case& c, const DeclaredProfile& declared);

}  // namespace kv
