#include "harness/serving/bounded_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace kv {

Result<kvattn::PagedCache> bounded_cache(const BoundedCacheOptions& o) {
  struct Bound {
    const char* what;
    uint64_t count, each, most;
  };
  for (const Bound& b :
       {Bound{"pages", o.pages, 1, limits::kServedPagesMax},
        Bound{"slots in all pages", o.pages, o.page_slots, limits::kServedSlotsMax},
        Bound{"slots in all requests", o.batch_slots, o.slots_max, limits::kServedSlotsMax}}) {
    if (b.count > 0 && b.each > b.most / b.count) {
      return bad_input(fmt::format("page pool: expected at most {} {}, got {} times {}", b.most,
                                   b.what, b.count, b.each));
    }
  }
  auto cache = kvattn::PagedCache::create(
      {.groups = {{}},
       .pages = kvattn::PageCount(static_cast<int64_t>(o.pages)),
       .page_slots = static_cast<int64_t>(o.page_slots),
       .batch_slots = static_cast<int32_t>(o.batch_slots),
       .requests = static_cast<int32_t>(o.batch_slots),
       .context_limit = kvattn::SlotCount(static_cast<int64_t>(o.slots_max)),
       .step_slots_max = kvattn::SlotCount(static_cast<int64_t>(o.slots_max)),
       .prefix_index = o.prefix_index});
  if (!cache.ok()) return bad_input("page pool: " + cache.status().text());
  return std::move(*cache);
}

uint64_t slots_of(const TraceRequest& request) {
  return request.prompt_tokens + std::max<uint64_t>(request.output_tokens, 1) - 1;
}

uint64_t longest_request(std::span<const TraceRequest> trace) {
  uint64_t longest = 1;
  for (const TraceRequest& request : trace) longest = std::max(longest, slots_of(request));
  return longest;
}

Result<void> check_tokens(std::span<const TraceRequest> trace) {
  uint64_t tokens = 0;
  for (const TraceRequest& request : trace) tokens += slots_of(request);
  if (tokens <= limits::kServedTokensMax) return {};
  return bad_input(fmt::format("trace: expected at most {} tokens, got {}; take fewer requests",
                               limits::kServedTokensMax, tokens));
}

}  // namespace kv
