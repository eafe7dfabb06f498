// Purpose: a trace through the production manager: who is admitted when, and what the pool holds.
// Contract: the same service as trace/serve.h counts, but each admission, append and release is the
// manager's own, prompts share pages as the trace's block ids say, and what it refuses is refused.
// Where no prefix is shared, or in decode only, it agrees with serve() in every moment.
// `pool_pages` 0: room for `batch_slots` requests of the longest length. Beside it, as large, an
// arena that gives each admitted request one contiguous run for its worst case: what external
// fragmentation would cost, which pages know nothing of. Example:
// KV_ASSIGN_OR_RETURN(ManagedService s, serve_managed(trace, {.batch_slots = 8}));
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/core/result.h"
#include "harness/serving/contiguous_arena.h"
#include "harness/trace/serve.h"

namespace kv {

/// The pool after a step.
struct PoolMoment {
  uint64_t step = 0;
  uint64_t requests = 0;
  uint64_t held_pages = 0;      // in some block table, each once
  uint64_t held_slots = 0;      // of requests; a slot that two share counts twice
  uint64_t table_pages = 0;     // entries of all block tables
  uint64_t returned_pages = 0;  // that nobody held any more, so far
  FreeSpace contiguous = {};    // of the arena, in pages
};

struct ManagedService {
  Served served;
  uint64_t pool_pages = 0;
  uint64_t hit_pages = 0, evicted_pages = 0, returned_pages = 0;
  uint64_t blocked_by_gaps = 0, without_room = 0;  // requests that the arena could not place
  std::vector<PoolMoment> moments;                 // after each step
};
Result<ManagedService> serve_managed(std::span<const TraceRequest> trace,
                                     const ServeOptions& options);

}  // namespace kv
