// What a request holds: taking, letting go, forgetting.
#include <algorithm>

#include "impl/cache/state.h"

namespace kvattn {

void PagedCache::State::reset(Content& c) {
  c.tokens.clear();
  for (int32_t g = 0; g < group_count(); ++g) {
    c.tables[g].clear();
    c.kept[g] = 0;
  }
  c.root = {};
  c.settled = c.written = c.depth = 0;
  c.path_slots = std::numeric_limits<int64_t>::max();
  c.node = kNoNode;
  c.last_step = {};
  c.pending_count = 0;
}

// Vectors have room for the longest request, so that assigning allocates nothing.
void PagedCache::State::copy(const Content& from, Content& to) {
  to = from;
  for (int32_t g = 0; g < group_count(); ++g) {
    for (Page page : to.tables[g]) {
      if (page != kNoPage) pool.hold(page);
    }
  }
  if (to.node != kNoNode) index.hold(to.node);
}

void PagedCache::State::drop_page(Content& c, int32_t group, int64_t page) {
  Page& entry = c.tables[group][page];
  if (entry == kNoPage) return;
  if (pool.drop(entry, c.last_step)) ++counters.fenced_pages;
  entry = kNoPage;
}

// The last page first: it then is the first of its prefix to be evicted.
void PagedCache::State::drop_tail(Content& c, int64_t pages) {
  for (int32_t g = 0; g < group_count(); ++g) {
    auto& table = c.tables[g];
    for (auto p = static_cast<int64_t>(table.size()); p > pages; --p) {
      drop_page(c, g, p - 1);
      table.pop_back();
    }
    c.kept[g] = std::min(c.kept[g], pages);
  }
}

void PagedCache::State::drop_all(Content& c) {
  drop_tail(c, 0);
  cut_path(c, 0);
}

void PagedCache::State::cut_path(Content& c, int64_t depth) {
  for (; c.depth > depth; --c.depth) {
    const NodeId parent = index.parent(c.node);
    if (parent != kNoNode) index.hold(parent);
    index.release(c.node);
    c.node = parent;
  }
}

void PagedCache::State::cut_written(Content& c, int64_t length) {
  c.written = std::min(c.written, length);
  for (int i = 0; i < c.pending_count; ++i) c.pending[i].end = std::min(c.pending[i].end, length);
}

// The query of the last settled slot may be asked again, and sees window_left slots before its own.
int64_t PagedCache::State::first_needed_page(int32_t group, int64_t length) const {
  if (window(group) < 0) return 0;
  return std::max<int64_t>(length - 1 - window(group), 0) / page_slots();
}

// Not when a step is launched: its own first queries see further back. A later step in flight keeps
// what it sees by its fence.
void PagedCache::State::expire(Content& c) {
  for (int32_t g = 0; g < group_count(); ++g) {
    for (const int64_t first = first_needed_page(g, c.settled); c.kept[g] < first; ++c.kept[g]) {
      drop_page(c, g, c.kept[g]);
      ++counters.expired_pages;
    }
  }
}

}  // namespace kvattn
