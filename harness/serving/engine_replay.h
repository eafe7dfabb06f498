// Purpose: a serving trace through an engine with its own cache, manager and memory, judged after
// every operation: structure always, every appended slot by its bytes, attention on a sample.
// Contract: requests come at their recorded times (or all at the beginning), are admitted in file
// order and served by continuous batching, prompts in chunks, at their recorded lengths; prompts
// share what the trace's block ids say. Heads are tiny: what is checked is where bytes lie, not how
// many there are. One row in `sample_one_in`, chosen by the seed, attends with its last token, and
// is judged against the reference. The operations are made as the engine's answers come, so the
// trace may be longer than a case may be. Example:
//   EngineReplay replay(trace, options);
//   KV_RETURN_IF_ERROR(engine.create(replay.history_case()));  replay.run(engine, {}, {});
#pragma once

#include <functional>

#include "harness/core/result.h"
#include "harness/history/judge.h"
#include "harness/trace/serve.h"

namespace kv {

struct EngineReplayOptions {
  uint32_t batch_slots = 32;
  uint32_t chunk_tokens = 512;
  uint32_t page_slots = 256;
  uint64_t pool_pages = 0;  // 0: for twice `batch_slots` average requests, and the longest one
  uint64_t step_ns = 0;     // duration of a step; 0: all requests are there at the beginning
  uint64_t sample_one_in = 1000;
  uint64_t seed = 1;
};

struct ReplayResult {
  MaybeFinding finding;
  HistoryStats stats;
  Served served;
  uint64_t rows = 0, rows_sampled = 0;  // of steps
  uint64_t prompt_slots = 0, hit_slots = 0, appended_slots = 0;
  uint64_t token_bytes = 0;  // K and V of one token, in all layers
  bool stopped = false;      // by the caller
};

class EngineReplay {
 public:
  /// Refuses what does not fit into a case's limits.
  static Result<EngineReplay> create(std::span<const TraceRequest> trace,
                                     const EngineReplayOptions& options);

  /// The settings; it has no operations.
  const Case& history_case() const { return case_; }
  /// `go_on`: told of the finished requests after each step; false stops.
  ReplayResult run(Engine& engine, const Conventions& conventions,
                   const std::function<bool(uint64_t finished)>& go_on) const;

 private:
  EngineReplay(std::span<const TraceRequest> trace, const EngineReplayOptions& options)
      : trace_(trace), options_(options) {}

  std::span<const TraceRequest> trace_;
  EngineReplayOptions options_;
  Case case_;
};

}  // namespace kv
