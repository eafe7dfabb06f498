// Purpose: the manager under a trace, no larger than this machine should be asked for.
// Contract: a configuration that the manager refuses, or that would take gigabytes of tables, is
// bad input. A page of the pool counts one byte, so that bytes of the manager are pages here.
// Example:  KV_ASSIGN_OR_RETURN(PagedCache cache, bounded_cache({.pages = 100, .slots_max =
// 4096}));
#pragma once

#include <cstdint>
#include <span>

#include "harness/core/result.h"
#include "harness/trace/trace.h"
#include "impl/include/kvattn/paged_cache.h"

namespace kv::limits {

inline constexpr uint64_t kServedPagesMax = 1u << 24;
inline constexpr uint64_t kServedSlotsMax = 1u << 28;   // 2 GiB of token ids
inline constexpr uint64_t kServedTokensMax = 1u << 30;  // of a trace: about half a minute

}  // namespace kv::limits

namespace kv {

struct BoundedCacheOptions {
  uint64_t pages = 1;
  uint64_t page_slots = 16;
  uint64_t slots_max = 1;  // of one request, and of one step
  uint32_t batch_slots = 1;
  bool prefix_index = false;
};

Result<kvattn::PagedCache> bounded_cache(const BoundedCacheOptions& options);

/// Slots that a request holds in the end: the last sampled token is never appended.
uint64_t slots_of(const TraceRequest& request);
uint64_t longest_request(std::span<const TraceRequest> trace);  // in such slots; at least 1

/// Refuses a trace that would take too long.
Result<void> check_tokens(std::span<const TraceRequest> trace);

}  // namespace kv
