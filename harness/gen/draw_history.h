// Purpose: the generator of histories for engines that own their cache.
// Contract: total and lawful: check_case accepts every case. It draws what reported faults of
// caches needed to show: small pools, sharers that diverge, lengths at all residues of the page (0,
// 1 and -1 densely), several stresses at once (each axis is off in half of the cases), cancel
// anywhere, the order of completion as data, calls that must be refused, failing allocations,
// reused ids. In five of nine histories K is stored rotated, or K and V quantised (draw_formats.h).
// Lengths in the operations are the generator's estimate: what the engine finds in its prefix cache
// it cannot know.
// Example:  PhiloxSource choices(seed, index);  Case c = draw_history(choices, {});
#pragma once

#include "harness/case/offers.h"
#include "harness/gen/choice_source.h"

namespace kv {

struct HistoryScope {
  uint32_t operations_max = 200;
  bool attends = false;  // rows query, in a shape that attention kernels offer; else the smallest
  bool drafts = true;    // the engine may have a draft model
  bool formats = true;   // K and V may be stored rotated, or quantised
  /// Of how K and V are stored; the rest is not drawn.
  OfferSet offered = OfferSet::all();
};

Case draw_history(ChoiceSource& choices, const HistoryScope& scope);

}  // namespace kv
