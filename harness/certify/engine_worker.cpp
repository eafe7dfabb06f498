#include "harness/certify/engine_worker.h"

namespace kv {

Result<EngineWorker> start_engine_worker(const BenchOptions& bench) {
  const std::string plugin = bench.plugin_path.empty() ? default_plugin_path() : bench.plugin_path;
  KV_ASSIGN_OR_RETURN(StartedWorker started,
                      start_worker({.device = bench.device,
                                    .plugin_path = plugin,
                                    .executable = bench.executable,
                                    .silence_max = std::chrono::milliseconds(
                                        static_cast<int64_t>(bench.call_seconds * 1000)),
                                    .memory_bytes_max = bench.memory_mib << 20,
                                    .checks = bench.checks}));
  if (!started.hello.engine_level)
    return unsupported("the plugin '" + plugin + "' has no engine level");
  return EngineWorker{std::move(started.process), std::move(started.hello.plugin)};
}

}  // namespace kv
