// Purpose: the operations of a case: who is admitted, which rows each step computes, who leaves
// when; and the number of pages, which is drawn against what the operations need.
// Contract: lawful whatever is chosen (no row of a request that left, pages suffice), at
// least one row attends, and the sum of row costs keeps to swarm.budget except for one small row.
#pragma once

#include "harness/case/case.h"
#include "harness/gen/choice_source.h"
#include "harness/gen/draw.h"
#include "harness/gen/swarm.h"

namespace kv {

/// Fills c.ops and c.pool.page_count; the other settings are drawn already.
void draw_operations(ChoiceSource& choices, const Swarm& swarm, const DrawLimits& limits, Case& c);

}  // namespace kv
