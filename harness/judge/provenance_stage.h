// Purpose: stage 3, every slot of every live sequence holds its token's K and V in each layer, and
// nothing else was written.
// Contract: decides from bytes alone, before any value is looked at. New slots must hold exactly
// what the data function gave; every other slot of every reported page must be as it was. By
// induction over the operations that is every slot, at the cost of the changed pages only.
// A fault is named after what is recognised in the slot:
//   foreign-slot   another request's token
//   wrong-slot     another token of the request, another head or layer, or K in place of V
//   unwritten-slot what was there before
//   stray-write    a slot that the operation does not own was changed
//   damaged-slot   bytes of nobody
#pragma once

#include <optional>

#include "harness/judge/failure.h"

namespace kv {

struct ProvenanceCounts {
  uint64_t slots = 0;  // K and V of one layer count as one
};

/// `view.pool` must be the image before the step.
std::optional<Failure> judge_provenance(const StepView& view, ProvenanceCounts& counts);

}  // namespace kv
