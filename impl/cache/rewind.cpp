// Truncate and shift: slots that go away at the end and in the middle.
#include <algorithm>

#include "impl/cache/state.h"

namespace kvattn {

void PagedCache::State::cut(Content& c, int64_t length) {
  cut_path(c, length / page_slots());
  cut_written(c, length);
  drop_tail(c, pages_for(SlotCount(length), page_slots()).value);
  c.tokens.resize(length);
  c.settled = length;
  if (length <= c.path_slots) c.path_slots = std::numeric_limits<int64_t>::max();
}

Status PagedCache::truncate(const Handle& handle, SlotCount length) {
  State& s = *state_;
  StatusOr<Request*> found = s.require_active("truncate", handle);
  if (!found.ok()) return found.status();
  Content& c = s.content(**found);
  if (length.value < 0 || length.value > c.length()) {
    return refused("truncate: request ", index_of(handle.request), ": expected 0 to ", c.length(),
                   " slots, got ", length);
  }
  for (int32_t g = 0; g < s.group_count(); ++g) {
    if (s.first_needed_page(g, length.value) < c.kept[g]) {
      return refused("truncate: request ", index_of(handle.request), ": slots before ",
                     c.kept[g] * s.page_slots(), " have expired, and a query after ", length,
                     " slots sees some of them");
    }
  }
  s.cut(c, length.value);
  s.expire(c);
  return {};
}

// The slots from the page of `begin` on are copied to new pages, run by run: pages that others hold
// stay as they are, and no copy overwrites what another one reads. Pages that no later query sees,
// behind the window, come to hold nothing.
void PagedCache::State::copy_shifted(Content& c, int32_t group, SlotRange gap) {
  const int64_t begin = gap.begin.value, gone = gap.end.value - begin;
  const int64_t length = c.length() - gone, first = begin / page_slots();
  auto& table = c.tables[group];
  const int64_t old_pages = std::ssize(table);
  const int64_t needed = c.kept[group] == 0 ? 0 : first_needed_page(group, length);
  for (int64_t slot = first * page_slots(); slot < length;) {
    if (slot / page_slots() < needed) {
      table.push_back(kNoPage);
      slot += page_slots();
      continue;
    }
    if (slot % page_slots() == 0) table.push_back(pool.take(Group{group}));
    const int64_t from = slot < begin ? slot : slot + gone;
    int64_t run = page_slots() - std::max(slot % page_slots(), from % page_slots());
    run = std::min(run, (slot < begin ? begin : length) - slot);
    copies.push_back({.group = Group{group},
                      .from = table[from / page_slots()],
                      .to = table.back(),
                      .from_slot = static_cast<int32_t>(from % page_slots()),
                      .to_slot = static_cast<int32_t>(slot % page_slots()),
                      .slots = static_cast<int32_t>(run)});
    counters.copied_slots += run;
    slot += run;
  }
  for (int64_t p = old_pages; p > first; --p) drop_page(c, group, p - 1);
  table.erase(table.begin() + first, table.begin() + old_pages);
}

// Whole pages are let go, and nothing is copied.
void PagedCache::State::drop_shifted(Content& c, int32_t group, SlotRange gap) {
  const int64_t first = gap.begin.value / page_slots(), last = gap.end.value / page_slots();
  for (int64_t p = last; p > first; --p) drop_page(c, group, p - 1);
  auto& table = c.tables[group];
  table.erase(table.begin() + first, table.begin() + last);
}

// Whole pages can be let go without copying.
PageCount PagedCache::State::pages_shifted(const Content& c, SlotRange gap) const {
  const int64_t begin = gap.begin.value, end = gap.end.value, length = c.length();
  const bool whole_pages = begin % page_slots() == 0 && end % page_slots() == 0;
  if (whole_pages || end == length) return PageCount(0);
  const PageCount pages =
      pages_for(SlotCount(length - (end - begin)), page_slots()) - PageCount(begin / page_slots());
  return PageCount(pages.value * group_count());
}

Status PagedCache::State::why_no_shift(const Handle& handle, SlotRange gap) {
  StatusOr<Request*> found = require_active("shift", handle);
  if (!found.ok()) return found.status();
  const Content& c = content(**found);
  if (gap.begin.value < 0 || gap.begin >= gap.end || gap.end.value > c.length()) {
    return refused("shift: request ", index_of(handle.request), ": expected a range in ",
                   c.length(), " slots that is not empty, got ", gap.begin, " to ", gap.end);
  }
  for (int32_t g = 0; g < group_count(); ++g) {
    const int64_t gone = gap.end.value - gap.begin.value;
    const int64_t seen = first_needed_page(g, c.length() - gone) * page_slots();
    const int64_t was = seen < gap.begin.value ? seen : seen + gone;
    if (seen < c.length() - gone && was < c.kept[g] * page_slots()) {
      return refused("shift: request ", index_of(handle.request), ": slots before ",
                     c.kept[g] * page_slots(), " have expired, and the next query would see slot ",
                     was);
    }
  }
  return why_no_room("shift", pages_shifted(c, gap));
}

Status PagedCache::check_shift(const Handle& handle, SlotRange gap) const {
  return state_->why_no_shift(handle, gap);
}

StatusOr<std::span<const SlotCopy>> PagedCache::shift(const Handle& handle, SlotRange gap) {
  State& s = *state_;
  KVATTN_RETURN_IF_ERROR(s.why_no_shift(handle, gap));
  Content& c = s.content(*s.find(handle.request));
  const int64_t begin = gap.begin.value, end = gap.end.value;
  const PageCount pages = s.pages_shifted(c, gap);
  KVATTN_RETURN_IF_ERROR(s.reserve("shift", pages));
  s.copies.clear();
  if (end == c.length()) {
    s.cut(c, begin);
    return std::span<const SlotCopy>(s.copies);
  }
  for (int32_t g = 0; g < s.group_count(); ++g) {
    pages.value == 0 ? s.drop_shifted(c, g, gap) : s.copy_shifted(c, g, gap);
    const auto& table = c.tables[g];
    if (c.kept[g] > 0) {
      c.kept[g] = std::ranges::find_if(table, [](Page p) { return p != kNoPage; }) - table.begin();
    }
  }
  s.cut_path(c, begin / s.page_slots());
  s.cut_written(c, begin);
  c.path_slots = std::min(c.path_slots, begin);
  c.tokens.erase(c.tokens.begin() + begin, c.tokens.begin() + end);
  c.settled = c.length();
  s.expire(c);
  return std::span<const SlotCopy>(s.copies);
}

}  // namespace kvattn
