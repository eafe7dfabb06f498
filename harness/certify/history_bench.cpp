#include "harness/certify/history_bench.h"

#include <optional>

#include "harness/engine/remote_engine.h"

namespace kv {

Result<HistoryResult> HistoryBench::run(const Case& c, JudgeSettings settings) {
  if (worker_.process == nullptr) {
    KV_ASSIGN_OR_RETURN(worker_, start_engine_worker(bench_));
  }
  settings.conventions = worker_.conventions();
  std::optional<RemoteEngine> engine;
  const MakeEngine make = [&](const Case& one) -> Result<Engine*> {
    engine.emplace(*worker_.process);
    KV_RETURN_IF_ERROR(engine->create(one));
    return &*engine;
  };
  Result<HistoryResult> result = run_with_twin(c, make, settings);
  if (engine->worker_ended()) worker_.process.reset();
  return result;
}

}  // namespace kv
