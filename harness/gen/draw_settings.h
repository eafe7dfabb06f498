// Purpose: the parts of a case that are settings: shape, mask, pool (but its page count), data.
// Contract: total; see draw.h.
#pragma once

#include "harness/case/case.h"
#include "harness/gen/choice_source.h"
#include "harness/gen/swarm.h"

namespace kv {

/// Everything but the operations and pool.page_count.
Case draw_settings(ChoiceSource& choices, const Swarm& swarm);

}  // namespace kv
