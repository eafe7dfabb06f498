// A copy of everything that a check wants to see.
#include <algorithm>
#include <numeric>

#include "impl/cache/state.h"

namespace kvattn {
namespace {

RequestSnapshot snapshot_of(const Request& r, const Content& c, const Handle& handle) {
  return {.request = r.id,
          .state = r.state,
          .batch_slot = r.batch_slot,
          .owner = r.owner,
          .ticket = r.ticket,
          .side_input = c.root.side_input,
          .length = handle.length,
          .position_offset = c.root.position_offset,
          .tables = c.tables};
}

/// Parents before children: nodes by depth, then by number. Counted, not sorted: there are many.
std::vector<PrefixSnapshot> prefixes_of(const PrefixIndex& index) {
  std::vector<NodeId> used;
  std::vector<int32_t> first = {0, 0};  // entry of each depth, after the loops below
  for (int64_t i = 0; i < index.capacity(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (!index.is_used(node)) continue;
    used.push_back(node);
    const auto next = static_cast<size_t>(index.depth(node)) + 1;
    if (first.size() <= next) first.resize(next + 1, 0);
    ++first[next];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<int32_t> entry(index.capacity(), -1);
  for (const NodeId node : used) entry[index_of(node)] = first[index.depth(node)]++;
  std::vector<PrefixSnapshot> all(used.size());
  for (const NodeId node : used) {
    const NodeId parent = index.parent(node);
    all[entry[index_of(node)]] = {.parent = parent == kNoNode ? -1 : entry[index_of(parent)],
                                  .identity = index.identity(node),
                                  .side_input = index.root(node).side_input,
                                  .position_offset = index.root(node).position_offset,
                                  .tokens = index.tokens(node),
                                  .pages = index.pages(node)};
  }
  return all;
}

}  // namespace

CacheSnapshot PagedCache::snapshot() const {
  const State& s = *state_;
  CacheSnapshot out;
  out.reference_counts.reserve(s.pool.size().value);
  for (int64_t p = 0; p < s.pool.size().value; ++p) {
    out.reference_counts.push_back(s.pool.references(static_cast<Page>(p)));
  }
  const auto free = s.pool.free_list(), fenced = s.pool.fenced_list();
  out.free_pages.assign(free.begin(), free.end());
  out.fenced_pages.assign(fenced.begin(), fenced.end());
  for (Page p = s.pool.oldest_cached(); p != kNoPage; p = s.pool.next_cached(p)) {
    out.cached_pages.push_back(p);
  }
  for (const Request& r : s.requests) {
    if (r.exists) out.requests.push_back(snapshot_of(r, s.content(r), s.handle_of(r)));
  }
  std::ranges::sort(out.requests, {}, &RequestSnapshot::request);
  out.prefixes = prefixes_of(s.index);
  out.host_free_pages = s.host_free;
  out.steps_in_flight.assign(s.in_flight.begin(), s.in_flight.begin() + s.in_flight_count);
  return out;
}

}  // namespace kvattn
