#include "harness/cli/history_bench.h"

#include <optional>

#include "harness/history/remote_engine.h"

namespace kv::cli {

Result<void> HistoryBench::start() {
  const std::string plugin =
      bench_.plugin_path.empty() ? default_plugin_path() : bench_.plugin_path;
  WorkerSpec spec;
  spec.executable = bench_.executable;
  spec.arguments = {"worker", "--device", device_name(bench_.device), "--plugin", plugin};
  spec.silence_max = std::chrono::milliseconds(static_cast<int64_t>(bench_.call_seconds * 1000));
  spec.memory_bytes_max = bench_.memory_mib << 20;
  KV_ASSIGN_OR_RETURN(auto worker, WorkerProcess::start(spec));
  const WorkerEvent event = worker->receive();
  if (const auto* ending = std::get_if<Ending>(&event)) {
    return bad_input("loading the plugin '" + plugin + "' ended the worker: " + ending->message);
  }
  const auto hello = decode_hello(std::get<Frame>(event).payload);
  if (!hello) return bad_input("the plugin '" + plugin + "' damaged its worker");
  if (hello->error) return *hello->error;
  if (!hello->engine_level) return unsupported("the plugin '" + plugin + "' has no engine level");
  plugin_ = hello->plugin;
  worker_ = std::move(worker);
  return {};
}

Result<HistoryResult> HistoryBench::run(const Case& c, JudgeSettings settings) {
  if (worker_ == nullptr) KV_RETURN_IF_ERROR(start());
  settings.conventions = {
      .lse_base = plugin_.lse_base, .lse_layout = plugin_.lse_layout, .promises = plugin_.promises};
  std::optional<RemoteEngine> engine;
  const MakeEngine make = [&](const Case& one) -> Result<Engine*> {
    engine.emplace(*worker_);
    KV_RETURN_IF_ERROR(engine->create(one));
    return &*engine;
  };
  Result<HistoryResult> result = run_with_twin(c, make, settings);
  if (engine->worker_ended()) worker_.reset();
  return result;
}

}  // namespace kv::cli
