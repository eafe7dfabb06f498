// Purpose: a cascade judged link by link: each part as attention over what it may see, and the
// merge as a merge of the states that the parts returned, which are its exact inputs. So a wrong
// merge is told from wrong states. Contract: a state whose row sees nothing in its part is empty,
// whatever it holds. A violation is computed with MPFR before it is a failure.
#pragma once

#include <optional>

#include "harness/judge/value_stage.h"

namespace kv {

/// `visible`: what the whole step sees. `view.pool` must be the image after the step.
std::optional<Failure> judge_cascades(const StepView& view, const VisibleSets& visible,
                                      ValueStage& values, VerdictStats& stats);

}  // namespace kv
