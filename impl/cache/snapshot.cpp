// A copy of everything that a check wants to see.
#include <algorithm>

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

/// Parents before children: nodes by depth, then by number.
std::vector<PrefixSnapshot> prefixes_of(const PrefixIndex& index, int32_t groups) {
  struct Place {
    int32_t depth;
    NodeId node;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> places;
  for (int64_t i = 0; i < index.capacity(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (!index.is_used(node)) continue;
    places.push_back({index.depth(node), node});
  }
  std::ranges::sort(places);
  std::vector<int32_t> entry(index.capacity(), -1);
  std::vector<PrefixSnapshot> all;
  for (const Place& place : places) {
    PrefixSnapshot p;
    const NodeId parent = index.parent(place.node);
    p.parent = parent == kNoNode ? -1 : entry[index_of(parent)];
    p.side_input = index.root(place.node).side_input;
    p.position_offset = index.root(place.node).position_offset;
    p.identity = index.identity(place.node);
    p.tokens = index.tokens(place.node);
    for (int32_t g = 0; g < groups; ++g) p.pages.push_back(index.page(place.node, Group{g}));
    entry[index_of(place.node)] = static_cast<int32_t>(all.size());
    all.push_back(std::move(p));
  }
  return all;
}

}  // namespace

CacheSnapshot PagedCache::snapshot() const {
  const State& s = *state_;
  CacheSnapshot out;
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
  out.prefixes = prefixes_of(s.index, s.group_count());
  out.host_free_pages = s.host_free;
  out.steps_in_flight.assign(s.in_flight.begin(), s.in_flight.begin() + s.in_flight_count);
  return out;
}

}  // namespace kvattn
