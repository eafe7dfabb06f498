// Purpose: plain reads that only say what a compare-and-swap at the same address expects.
// Contract: such a read needs no order: a value that is out of date makes the swap fail. It counts
// as a relaxed one from here on, so that the loops of the programming guide and of the toolkit's
// own headers (atomicAdd on bfloat162 before sm_90) are no races. A read belongs to a swap when it
// has the same address (register, offset, width) and moves alone carry its value to the compare
// operand. What else becomes of the value is not looked at: a race of such a use is missed, never
// made up.
// Example: mark_optimistic_reads(lowered);
#pragma once

#include "harness/simt/exec/lower/lower.h"

namespace kv::simt {

void mark_optimistic_reads(Lowered& lowered);

}  // namespace kv::simt
