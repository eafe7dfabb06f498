// Purpose: the ladder of logits, for the family and for the cases that are drawn on it.
// Contract: changes the data of the case (Data::view) and nothing else.
// Example:  if (choices.one_in(6)) shift_logits(choices, c);
#pragma once

#include "harness/case/case.h"
#include "harness/gen/choice_source.h"

namespace kv {

/// Moves all logits of the case by a step of the ladder; false where that cannot be done.
bool shift_logits(ChoiceSource& choices, Case& c);

}  // namespace kv
