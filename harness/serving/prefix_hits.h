// Purpose: how many blocks of the prompts of a trace are in the cache already, by size of the pool.
// Contract: requests are served one after another in file order, prompts alone. The manager
// publishes full pages only; `ideal_hits` counts what the trace's own ids say with nothing ever
// evicted, the partial last block of a repeated prompt included and apart.
// Example:  KV_ASSIGN_OR_RETURN(PrefixHits h, serve_prefixes(trace, {.pool_pages = 20'000}));
#pragma once

#include <cstdint>
#include <span>

#include "harness/core/result.h"
#include "harness/trace/trace.h"

namespace kv {

struct IdealHits {
  uint64_t blocks = 0, hits = 0;
  uint64_t partial_hits = 0;     // of the hits: last blocks that their prompts do not fill
  uint64_t distinct_blocks = 0;  // ids
};
IdealHits ideal_hits(std::span<const TraceRequest> trace);

struct PrefixOptions {
  uint64_t pool_pages = 0;  // 0: as many as are ever asked for, so that none is evicted
  uint64_t page_slots = kTraceBlockTokens;
};

struct PrefixHits {
  uint64_t pool_pages = 0;
  uint64_t prompt_pages = 0;  // of all requests, a partial last one counted whole
  uint64_t hit_pages = 0, published_pages = 0, evicted_pages = 0;
  uint64_t refused = 0;  // requests longer than the pool
};
Result<PrefixHits> serve_prefixes(std::span<const TraceRequest> trace,
                                  const PrefixOptions& options);

}  // namespace kv
