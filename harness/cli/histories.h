// Purpose: histories for engines that own their cache, for `check --level engine` and `replay`.
// Contract: the engine runs in a worker; the judge, here, asks it operation by operation. A finding
// is repeated in a fresh worker before it is told.
// Example:  if (c.engine) return replay_history(options, c);
#pragma once

#include "harness/case/case.h"
#include "harness/cli/commands.h"
#include "harness/run/worker_loop.h"

namespace kv::cli {

Result<ExitCode> check_histories(const CheckOptions& options);
Result<ExitCode> replay_history(const ReplayOptions& options, const Case& c);

/// What a worker answers kEngine frames with.
FrameServer serve_engine(const LoadedPlugin& plugin, const CudaRuntime& runtime);

}  // namespace kv::cli
