#include "harness/cli/engine_worker.h"

namespace kv::cli {

Result<EngineWorker> start_engine_worker(const BenchOptions& bench) {
  const std::string plugin = bench.plugin_path.empty() ? default_plugin_path() : bench.plugin_path;
  WorkerSpec spec;
  spec.executable = bench.executable;
  spec.arguments = {"worker", "--device", device_name(bench.device), "--plugin", plugin};
  spec.silence_max = std::chrono::milliseconds(static_cast<int64_t>(bench.call_seconds * 1000));
  spec.memory_bytes_max = bench.memory_mib << 20;
  EngineWorker worker;
  KV_ASSIGN_OR_RETURN(worker.process, WorkerProcess::start(spec));
  const WorkerEvent event = worker.process->receive();
  if (const auto* ending = std::get_if<Ending>(&event)) {
    return bad_input("loading the plugin '" + plugin + "' ended the worker: " + ending->message);
  }
  const auto hello = decode_hello(std::get<Frame>(event).payload);
  if (!hello) return bad_input("the plugin '" + plugin + "' damaged its worker");
  if (hello->error) return *hello->error;
  if (!hello->engine_level) return unsupported("the plugin '" + plugin + "' has no engine level");
  worker.plugin = hello->plugin;
  return worker;
}

}  // namespace kv::cli
