// Purpose: how K and V are stored: 8-bit codes with scales, RoPE, position ids.
// Contract: a third of the cases have codes, a third rotate; only what is offered. Drawn after
// everything else, so that it changes nothing of what came before.
// Example: draw_formats(choices, options.offered, c);
#pragma once

#include "harness/case/offers.h"
#include "harness/gen/choice_source.h"

namespace kv {

void draw_formats(ChoiceSource& choices, const OfferSet& offered, Case& c);
/// The same for a history of an engine.
void draw_history_formats(ChoiceSource& choices, const OfferSet& offered, Case& c);

}  // namespace kv
