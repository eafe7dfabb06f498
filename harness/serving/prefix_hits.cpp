#include "harness/serving/prefix_hits.h"

#include <algorithm>
#include <unordered_set>

#include "harness/case/pages.h"
#include "harness/serving/bounded_cache.h"
#include "harness/serving/trace_tokens.h"

namespace kv {
namespace {

// Every distinct block once, and the longest prompt, whose last page is never published.
uint64_t pages_without_eviction(std::span<const TraceRequest> trace, uint64_t page_slots) {
  uint64_t slots = 0;
  for (const TraceRequest& r : trace) {
    if (r.blocks.empty()) slots += r.prompt_tokens;
  }
  slots += ideal_hits(trace).distinct_blocks * kTraceBlockTokens;
  return pages_for(slots, page_slots) + pages_for(longest_request(trace), page_slots);
}

}  // namespace

IdealHits ideal_hits(std::span<const TraceRequest> trace) {
  IdealHits ideal;
  std::unordered_set<uint64_t> known;  // looked up only
  for (const TraceRequest& r : trace) {
    size_t shared = 0;
    while (shared < r.blocks.size() && known.contains(r.blocks[shared])) ++shared;
    ideal.blocks += r.blocks.size();
    ideal.hits += shared;
    if (shared > 0 && shared * kTraceBlockTokens > r.prompt_tokens) ++ideal.partial_hits;
    known.insert(r.blocks.begin(), r.blocks.end());
  }
  ideal.distinct_blocks = known.size();
  return ideal;
}

Result<PrefixHits> serve_prefixes(std::span<const TraceRequest> trace,
                                  const PrefixOptions& options) {
  KV_RETURN_IF_ERROR(check_tokens(trace));
  PrefixHits hits;
  hits.pool_pages = options.pool_pages > 0 ? options.pool_pages
                                           : pages_without_eviction(trace, options.page_slots);
  KV_ASSIGN_OR_RETURN(kvattn::PagedCache cache, bounded_cache({.pages = hits.pool_pages,
                                                               .page_slots = options.page_slots,
                                                               .slots_max = longest_request(trace),
                                                               .prefix_index = true}));
  TraceTokens tokens;
  std::vector<kvattn::Token> prompt;
  for (size_t i = 0; i < trace.size(); ++i) {
    tokens.prompt(trace[i], i, prompt);
    hits.prompt_pages += pages_for(prompt.size(), options.page_slots);
    const auto handle = cache.admit({.request = static_cast<kvattn::RequestId>(i),
                                     .prompt = prompt,
                                     .slots_max = kvattn::SlotCount(std::ssize(prompt))});
    if (!handle.ok()) {
      ++hits.refused;
      continue;
    }
    hits.hit_pages += static_cast<uint64_t>(handle->length.value) / options.page_slots;
    const kvattn::AppendRow row{.handle = *handle,
                                .tokens = std::span(prompt).subspan(handle->length.value)};
    const auto step = cache.step({&row, 1});
    KV_CHECK(step.ok(), step.status().text());
    KV_CHECK(cache.complete(step->number).ok(), "the step is in flight");
    KV_CHECK(cache.release(*handle).ok(), "the request exists");
  }
  hits.published_pages = cache.counters().published_pages;
  hits.evicted_pages = cache.counters().evicted_pages;
  return hits;
}

}  // namespace kv
