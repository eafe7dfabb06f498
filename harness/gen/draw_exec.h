// Purpose: how a case is executed: schedule, rounding, repeats, split size, kernel variant.
// Contract: total; the case's operations are drawn already. Which variant is forced depends on
// `variants`, what else is drawn does not.
#pragma once

#include <span>
#include <string>

#include "harness/case/case.h"
#include "harness/gen/choice_source.h"
#include "harness/gen/swarm.h"

namespace kv {

void draw_exec(ChoiceSource& choices, const Swarm& swarm, std::span<const std::string> variants,
               Case& c);

}  // namespace kv
