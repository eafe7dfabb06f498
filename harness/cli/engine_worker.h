// Purpose: a worker process that has loaded a plugin with an engine level.
// Contract: what is no such plugin is one error. Every engine made in it (RemoteEngine::create)
// replaces the one before.
// Example:  KV_ASSIGN_OR_RETURN(EngineWorker worker, start_engine_worker(options.bench));
//           RemoteEngine engine(*worker.process);
#pragma once

#include <memory>

#include "harness/cli/commands.h"
#include "harness/plugin/worker_process.h"
#include "harness/run/wire.h"

namespace kv::cli {

struct EngineWorker {
  std::unique_ptr<WorkerProcess> process;
  PluginFacts plugin;
};
Result<EngineWorker> start_engine_worker(const BenchOptions& bench);

}  // namespace kv::cli
