// Purpose: the two functions of the CUDA runtime's device side that kernels call: vprintf and
// __assertfail.
// Contract: sources are the addresses of the call's argument slots in parameter space; print has
// the slot of its result last. Printed text goes to standard output in lane order; at most 1 MiB
// of it for a launch, as a device's own buffer is bounded too.
#pragma once

#include "harness/simt/exec/warp.h"

namespace kv::simt {

const Ins* print_text(Warp& w, const Ins* i);
const Ins* assert_failed(Warp& w, const Ins* i);

}  // namespace kv::simt
