// Purpose: `kverify trace run --level engine`.
// Contract: as trace_run(); a finding is repeated in a fresh worker before it is told.
// Example:  if (options.level == "engine") return trace_replay(options);
#pragma once

#include "harness/cli/commands.h"

namespace kv::cli {

Result<ExitCode> trace_replay(const TraceOptions& options);

}  // namespace kv::cli
