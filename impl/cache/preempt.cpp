// Requests that give way to others, and come back.
#include <algorithm>

#include "impl/cache/state.h"

namespace kvattn {

void PagedCache::State::leave_batch(Request& r, RequestState state) {
  batch[index_of(r.batch_slot)] = nullptr;
  r.batch_slot = kNoBatchSlot;
  r.state = state;
}

void PagedCache::State::return_host_pages(Content& c) {
  for (auto& table : c.tables) {
    for (auto page = table.rbegin(); page != table.rend(); ++page) {
      if (*page != kNoPage) host_free.push_back(static_cast<HostPage>(index_of(*page)));
    }
    table.clear();
  }
}

PageCount PagedCache::State::pages_present(const Content& c) const {
  PageCount pages;
  for (const auto& table : c.tables) {
    pages += PageCount(std::ssize(table) - std::ranges::count(table, kNoPage));
  }
  return pages;
}

int32_t PagedCache::State::slots_of_page(const Content& c, int64_t page) const {
  return static_cast<int32_t>(std::min(page_slots(), c.length() - page * page_slots()));
}

Status PagedCache::preempt_to_recompute(const Handle& handle) {
  State& s = *state_;
  StatusOr<Request*> found = s.require_active("preempt", handle);
  if (!found.ok()) return found.status();
  Content& c = s.content(**found);
  s.drop_all(c);
  c.settled = c.written = 0;
  c.pending_count = 0;
  s.leave_batch(**found, RequestState::kPreempted);
  return {};
}

StatusOr<std::span<const HostCopy>> PagedCache::preempt_to_host(const Handle& handle) {
  State& s = *state_;
  StatusOr<Request*> found = s.require_active("preempt", handle);
  if (!found.ok()) return found.status();
  Content& c = s.content(**found);
  const PageCount pages = s.pages_present(c);
  if (pages.value > std::ssize(s.host_free)) {
    return exhausted("preempt: expected ", pages, " host pages, got ", s.host_free.size());
  }
  if (s.allocation_fails(pages)) return exhausted("preempt: an allocation was made to fail");
  s.host_copies.clear();
  s.cut_path(c, 0);
  for (int32_t g = 0; g < s.group_count(); ++g) {
    for (int64_t p = std::ssize(c.tables[g]) - 1; p >= c.kept[g]; --p) {
      const Page page = c.tables[g][p];
      const HostPage host = s.host_free.back();
      s.host_free.pop_back();
      s.host_copies.push_back(
          {.group = Group{g}, .page = page, .host_page = host, .slots = s.slots_of_page(c, p)});
      s.drop_page(c, g, p);
      c.tables[g][p] = static_cast<Page>(index_of(host));
    }
  }
  s.counters.swapped_out_pages += pages.value;
  s.leave_batch(**found, RequestState::kSwapped);
  return std::span<const HostCopy>(s.host_copies);
}

StatusOr<Resumed> PagedCache::resume(const Handle& handle) {
  State& s = *state_;
  StatusOr<Request*> found = s.require(handle);
  if (!found.ok()) return found.status();
  Request& r = **found;
  Content& c = s.content(r);
  if (r.state == RequestState::kActive) {
    return refused("resume: request ", index_of(handle.request), " is active already");
  }
  KVATTN_RETURN_IF_ERROR(s.why_no_budget("resume", c.slots_max));
  s.host_copies.clear();
  if (r.state == RequestState::kSwapped) {
    const PageCount pages = s.pages_present(c);
    KVATTN_RETURN_IF_ERROR(s.reserve("resume", pages));
    s.swap_in(c);
    s.counters.swapped_in_pages += pages.value;
  } else {
    s.recall_prefix(c);
  }
  s.join_batch(r);
  return Resumed{.handle = s.handle_of(r), .copies = s.host_copies};
}

void PagedCache::State::swap_in(Content& c) {
  for (int32_t g = 0; g < group_count(); ++g) {
    for (int64_t p = c.kept[g]; p < std::ssize(c.tables[g]); ++p) {
      const auto host = static_cast<HostPage>(index_of(c.tables[g][p]));
      const Page page = pool.take(Group{g});
      host_copies.push_back(
          {.group = Group{g}, .page = page, .host_page = host, .slots = slots_of_page(c, p)});
      host_free.push_back(host);
      c.tables[g][p] = page;
    }
  }
}

// What lies behind a gap is not the continuation of a prefix: only what lies before it is looked
// up.
void PagedCache::State::recall_prefix(Content& c) {
  const int64_t known = std::min(c.length(), c.path_slots);
  const int64_t pages = match(c.root, std::span<const Token>(c.tokens).first(known));
  c.tokens.resize(pages * page_slots());
  hold_prefix(c, pages);
}

}  // namespace kvattn
