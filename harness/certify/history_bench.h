// Purpose: histories in a worker process, one after another.
// Contract: a worker that has ended is replaced before the next history. Outputs are held against
// what the plugin declares (its LSE, its promises). Deterministic, as HistoryJudge.
// Example:  HistoryBench bench(options);  KV_ASSIGN_OR_RETURN(auto result, bench.run(c, {}));
#pragma once

#include "harness/case/offers.h"
#include "harness/certify/engine_worker.h"
#include "harness/history/twin.h"

namespace kv {

class HistoryBench {
 public:
  explicit HistoryBench(const BenchOptions& bench) : bench_(bench) {}

  /// The case and its twin. Unsupported when the plugin does not offer the case.
  Result<HistoryResult> run(const Case& c, JudgeSettings settings);
  /// What the engine offers, by asking it for small engines; everything when it cannot be asked.
  OfferSet offers();
  /// The next history gets a fresh process.
  void refresh() { worker_.process.reset(); }

 private:
  BenchOptions bench_;
  EngineWorker worker_;
};

}  // namespace kv
