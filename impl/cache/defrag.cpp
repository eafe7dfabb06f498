// Moves what is in use to the front of the pool.
#include <algorithm>

#include "impl/cache/state.h"

namespace kvattn {

// The slots of each page that hold bytes: all of a cached page, of another one the most that any
// holder has.
void PagedCache::State::count_live_slots() {
  for (const Request& r : requests) {
    if (!r.exists || r.state != RequestState::kActive) continue;
    const Content& c = content(r);
    for (int32_t g = 0; g < group_count(); ++g) {
      for (int64_t p = c.kept[g]; p < std::ssize(c.tables[g]); ++p) {
        int64_t& live = page_scratch[index_of(c.tables[g][p])];
        live = std::max<int64_t>(live, slots_of_page(c, p));
      }
    }
  }
  for (int64_t p = 0; p < pool.size().value; ++p) {
    if (pool.is_published(static_cast<Page>(p))) page_scratch[p] = page_slots();
  }
}

// page_scratch: -1 - new place of the pages that have moved, 0 or more of the others.
void PagedCache::State::rename_pages() {
  for (const Request& r : requests) {
    if (!r.exists || r.state != RequestState::kActive) continue;
    for (auto& table : content(r).tables) {
      for (Page& page : table) {
        if (page == kNoPage) continue;
        const int64_t moved = page_scratch[index_of(page)];
        if (moved < 0) page = static_cast<Page>(-1 - moved);
      }
    }
  }
}

StatusOr<std::span<const SlotCopy>> PagedCache::defrag() {
  State& s = *state_;
  if (s.in_flight_count > 0) {
    return refused("defrag: expected no step in flight, got ", s.in_flight_count);
  }
  s.copies.clear();
  s.count_live_slots();
  int64_t to = 0, from = s.pool.size().value - 1;
  for (;; ++to, --from) {
    while (to < from && s.page_scratch[to] > 0) ++to;
    while (to < from && s.page_scratch[from] == 0) --from;
    if (to >= from) break;
    const auto source = static_cast<Page>(from), target = static_cast<Page>(to);
    const Group group = s.pool.group(source);
    s.copies.push_back({.group = group,
                        .from = source,
                        .to = target,
                        .slots = static_cast<int32_t>(s.page_scratch[from])});
    s.counters.copied_slots += s.page_scratch[from];
    if (s.pool.is_published(source)) s.index.move_page(s.pool.node(source), group, target);
    s.pool.relocate(source, target);
    s.page_scratch[to] = s.page_scratch[from];
    s.page_scratch[from] = -1 - to;
  }
  s.rename_pages();
  const auto used = std::ranges::count_if(s.page_scratch, [](int64_t live) { return live > 0; });
  s.pool.free_in_order(PageCount(used));
  std::ranges::fill(s.page_scratch, 0);
  return std::span<const SlotCopy>(s.copies);
}

}  // namespace kvattn
