// Purpose: what requests of recorded lengths take from memory, in pages and under two older ways.
// Contract: each request goes through the manager alone and is measured at its end, so that the
// sums are of reserved and of used slots over all requests. Internal fragmentation is the share of
// reserved slots that hold nothing. Contiguous allocation reserves the longest request's slots for
// each; buddy allocation the next power of two of pages.
// Example:  KV_ASSIGN_OR_RETURN(PageUse use, page_use(trace, {.page_slots = 16}));
#pragma once

#include <cstdint>
#include <span>

#include "harness/core/result.h"
#include "harness/trace/trace.h"

namespace kv {

struct PageUseOptions {
  uint64_t page_slots = 16;
  bool with_last_token = false;  // the last sampled one, which no engine appends
};

struct PageUse {
  uint64_t slots = 0;  // used
  uint64_t pages = 0;
  uint64_t paged_slots = 0, contiguous_slots = 0, buddy_slots = 0;  // reserved
};
Result<PageUse> page_use(std::span<const TraceRequest> trace, const PageUseOptions& options);

/// Share of `reserved` that is not used; 0 of none.
double fragmentation(uint64_t reserved, uint64_t used);

}  // namespace kv
