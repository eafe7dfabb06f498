// Purpose: a worker process that has loaded a plugin with an engine level.
// Contract: what is no such plugin is one error. Every engine made in it (RemoteEngine::create)
// replaces the one before.
// Example:  KV_ASSIGN_OR_RETURN(EngineWorker worker, start_engine_worker(options.bench));
//           RemoteEngine engine(*worker.process);
#pragma once

#include <memory>

#include "harness/certify/bench.h"
#include "harness/history/judge.h"
#include "harness/run/start_worker.h"

namespace kv {

struct EngineWorker {
  std::unique_ptr<WorkerProcess> process;
  PluginFacts plugin;

  /// What its outputs are held against.
  Conventions conventions() const {
    return {
        .lse_base = plugin.lse_base, .lse_layout = plugin.lse_layout, .promises = plugin.promises};
  }
};
Result<EngineWorker> start_engine_worker(const BenchOptions& bench);

}  // namespace kv
