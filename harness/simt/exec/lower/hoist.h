// Purpose: values that are the same for every block of a launch, computed once for each warp.
// Contract: a step moves to the front of the program (Lowered::prologue) where its result is a
// function of parameters, constants and special registers other than %ctaid and the clocks, where
// it is the only writer of its results, and where no path reads them before. A load of a kernel
// parameter at a known offset is such a step. Equal steps become one, and what is only copied needs
// none. Where a register has other values too, such a one gets a register of its own, which is
// copied, and read by the rest of its basic block. What stays in the place of a step does nothing
// but count, so that counters and the turns of warps are those of the PTX as written. All of these
// values are defined: undefined data never meets them. Work is bounded; what the bounds leave out
// stays where it is.
// Example: hoist_invariants(lowered, file.live_at_entry, kernel.parameter_bytes);
#pragma once

#include <cstdint>
#include <vector>

#include "harness/simt/exec/lower/lower.h"

namespace kv::simt {

/// `live_at_entry`: registers that may be read before they are written. Targets of branches are
/// indices of steps before and after.
void hoist_invariants(Lowered& lowered, const std::vector<uint32_t>& live_at_entry,
                      uint64_t parameter_bytes);

}  // namespace kv::simt
