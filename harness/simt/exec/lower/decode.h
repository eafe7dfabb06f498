// Purpose: a kernel of a parsed module made ready to run.
// Contract: deterministic; the Program refers to the module, which must outlive it.
#pragma once

#include <memory>

#include "harness/core/result.h"
#include "harness/simt/exec/lower/lower.h"
#include "harness/simt/exec/probe.h"
#include "harness/simt/exec/program.h"

namespace kv::simt {

/// On error `*where` is the instruction at fault, or null.
Result<std::unique_ptr<Program>> decode(const LowerInput& input, const ProbePlan& probes,
                                        const ptx::Instruction** where);

}  // namespace kv::simt
