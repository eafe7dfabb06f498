#include "harness/serving/page_use.h"

#include <algorithm>
#include <bit>

#include "harness/serving/bounded_cache.h"
#include "harness/serving/trace_tokens.h"

namespace kv {

Result<PageUse> page_use(std::span<const TraceRequest> trace, const PageUseOptions& options) {
  KV_RETURN_IF_ERROR(check_tokens(trace));
  const auto slots_held = [&](const TraceRequest& r) {
    return slots_of(r) + (options.with_last_token && r.output_tokens > 0 ? 1 : 0);
  };
  uint64_t longest = 1;
  for (const TraceRequest& r : trace) longest = std::max(longest, slots_held(r));
  KV_ASSIGN_OR_RETURN(
      kvattn::PagedCache cache,
      bounded_cache({.pages = longest / std::max<uint64_t>(options.page_slots, 1) + 1,
                     .page_slots = options.page_slots,
                     .slots_max = longest}));
  PageUse use;
  TraceTokens tokens;
  std::vector<kvattn::Token> held;
  for (size_t i = 0; i < trace.size(); ++i) {
    tokens.prompt(trace[i], i, held);
    for (uint64_t slot = held.size(); slot < slots_held(trace[i]); ++slot) {
      held.push_back(TraceTokens::sampled(i, slot));
    }
    const auto handle = cache.admit({.request = static_cast<kvattn::RequestId>(i),
                                     .slots_max = kvattn::SlotCount(std::ssize(held))});
    KV_CHECK(handle.ok(), handle.status().text());
    const kvattn::AppendRow row{.handle = *handle, .tokens = held};
    const auto step = cache.step({&row, 1});
    KV_CHECK(step.ok(), step.status().text());
    KV_CHECK(cache.complete(step->number).ok(), "the step is in flight");
    const uint64_t pages = cache.table(*handle, kvattn::Group{0}).size();
    KV_CHECK(cache.release(*handle).ok(), "the request exists");
    use.slots += held.size();
    use.pages += pages;
    use.buddy_slots += std::bit_ceil(pages) * options.page_slots;
  }
  use.paged_slots = use.pages * options.page_slots;
  use.contiguous_slots = longest * trace.size();
  return use;
}

double fragmentation(uint64_t reserved, uint64_t used) {
  return reserved == 0 ? 0 : static_cast<double>(reserved - used) / static_cast<double>(reserved);
}

}  // namespace kv
