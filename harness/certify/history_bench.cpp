#include "harness/certify/history_bench.h"

#include <optional>

#include "harness/engine/remote_engine.h"

namespace kv {

namespace {

struct EngineWorkerOf {
  WorkerProcess& worker;
};

bool makes_engine(const void* asked, const Case& small) {
  Case c = small;
  c.engine =
      EngineLevel{.batch_slots = 1, .request_max = 1, .context_limit = 16, .step_tokens_max = 4};
  RemoteEngine engine(static_cast<const EngineWorkerOf*>(asked)->worker);
  return engine.create(c).ok();
}

}  // namespace

OfferSet HistoryBench::offers() {
  Result<EngineWorker> worker = start_engine_worker(bench_);
  if (!worker.ok()) return OfferSet::all();
  const EngineWorkerOf asked{*worker->process};
  return find_offers(makes_engine, &asked);
}

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
