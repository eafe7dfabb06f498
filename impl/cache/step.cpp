// A step: which slots new tokens go to, which pages are copied first, and what ends with it.
#include <algorithm>

#include "impl/cache/state.h"

namespace kvattn {
namespace {

bool has_partial_tail(const Content& c, int64_t page_slots) { return c.length() % page_slots != 0; }

}  // namespace

Status PagedCache::State::why_no_append(const AppendRow& row) {
  StatusOr<Request*> found = require_active("step", row.handle);
  if (!found.ok()) return found.status();
  const Handle own = handle_of(**found);
  if (row.handle.length != own.length) {
    return refused("step: request ", index_of(own.request), " stores ", own.length,
                   " slots, got a row that appends at slot ", row.handle.length);
  }
  if (row.handle != own) {
    return refused("step: request ", index_of(own.request), ": expected batch slot ",
                   index_of(own.batch_slot), ", ", own.layers, " layers and position offset ",
                   own.position_offset, ", got ", index_of(row.handle.batch_slot), ", ",
                   row.handle.layers, " and ", row.handle.position_offset);
  }
  if (row.dtype != config.dtype) {
    return refused("step: request ", index_of(own.request), ": expected K and V in ",
                   dtype_name(config.dtype), ", got ", dtype_name(row.dtype));
  }
  const int64_t tokens = std::ssize(row.tokens);
  const SlotCount most = std::min(config.step_slots_max, content(**found).slots_max - own.length);
  if (tokens > most.value || row.speculative.value < 0 || row.speculative.value > tokens) {
    return refused("step: request ", index_of(own.request), ": expected at most ", most,
                   " tokens, and no more speculative ones than tokens, got ", tokens, " and ",
                   row.speculative);
  }
  return {};
}

Status PagedCache::State::why_no_rows(std::span<const AppendRow> rows) {
  Status status;
  size_t right = 0;  // rows of distinct requests that may append
  for (; right < rows.size(); ++right) {
    status = why_no_append(rows[right]);
    if (!status.ok()) break;
    bool& has_row = find(rows[right].handle)->has_row;
    if (has_row) {
      status = refused("step: request ", index_of(rows[right].handle.request), " has two rows");
      break;
    }
    has_row = true;
  }
  for (const AppendRow& row : rows.first(right)) find(row.handle)->has_row = false;
  return status;
}

// Counts what append_row will take. Rows that share a tail page copy it all but once: page_scratch
// counts the rows that have left it.
PageCount PagedCache::State::pages_needed(std::span<const AppendRow> rows) {
  PageCount needed;
  const auto tails = [&](auto visit) {
    for (const AppendRow& row : rows) {
      const Content& c = content(*find(row.handle));
      if (row.tokens.empty() || !has_partial_tail(c, page_slots())) continue;
      for (const auto& table : c.tables) visit(table.back());
    }
  };
  for (const AppendRow& row : rows) {
    const int64_t length = row.handle.length.value;
    const PageCount more = pages_for(SlotCount(length + std::ssize(row.tokens)), page_slots()) -
                           pages_for(SlotCount(length), page_slots());
    needed += PageCount(more.value * group_count());
  }
  tails([&](Page page) {
    int64_t& left = page_scratch[index_of(page)];
    if (pool.is_published(page) || pool.references(page) - left > 1) {
      needed += PageCount(1);
      ++left;
    }
  });
  tails([&](Page page) { page_scratch[index_of(page)] = 0; });
  return needed;
}

void PagedCache::State::own_tail(Content& c, int32_t group) {
  Page& tail = c.tables[group].back();
  if (pool.is_writable(tail)) return;
  const Page own = pool.take(Group{group});
  const auto slots = static_cast<int32_t>(c.length() % page_slots());
  copies.push_back({.group = Group{group}, .from = tail, .to = own, .slots = slots});
  counters.copied_slots += slots;
  if (pool.drop(tail, c.last_step)) ++counters.fenced_pages;
  tail = own;
}

void PagedCache::State::append_row(const AppendRow& row) {
  Content& c = content(*find(row.handle));
  c.last_step = launched;
  if (row.tokens.empty()) return;
  if (has_partial_tail(c, page_slots())) {
    for (int32_t g = 0; g < group_count(); ++g) own_tail(c, g);
  }
  if (row.branches) c.path_slots = std::min(c.path_slots, c.length());
  c.tokens.insert(c.tokens.end(), row.tokens.begin(), row.tokens.end());
  const int64_t pages = pages_for(SlotCount(c.length()), page_slots()).value;
  for (int32_t g = 0; g < group_count(); ++g) {
    while (std::ssize(c.tables[g]) < pages) c.tables[g].push_back(pool.take(Group{g}));
  }
  c.pending[c.pending_count++] = {.step = launched, .end = c.length()};
  c.settled = c.length() - row.speculative.value;
}

Status PagedCache::check_step(std::span<const AppendRow> rows) const {
  State& s = *state_;
  KVATTN_RETURN_IF_ERROR(s.why_no_rows(rows));
  if (s.in_flight_count == s.config.steps_in_flight_max) {
    return exhausted("step: ", s.in_flight_count, " steps are in flight already");
  }
  return s.why_no_room("step", s.pages_needed(rows));
}

StatusOr<LaunchedStep> PagedCache::step(std::span<const AppendRow> rows) {
  State& s = *state_;
  KVATTN_RETURN_IF_ERROR(check_step(rows));
  KVATTN_RETURN_IF_ERROR(s.reserve("step", s.pages_needed(rows)));
  s.launched = static_cast<StepNumber>(index_of(s.launched) + 1);
  s.in_flight[s.in_flight_count++] = s.launched;
  s.copies.clear();
  for (const AppendRow& row : rows) s.append_row(row);
  return LaunchedStep{.number = s.launched, .copies = s.copies};
}

void PagedCache::State::settle_writes(Content& c, StepNumber step) {
  int left = 0;
  for (int i = 0; i < c.pending_count; ++i) {
    if (c.pending[i].step <= step) {
      c.written = std::max(c.written, c.pending[i].end);
    } else {
      c.pending[left++] = c.pending[i];
    }
  }
  c.pending_count = left;
}

Status PagedCache::complete(StepNumber step) {
  State& s = *state_;
  const auto flying = std::span(s.in_flight).first(s.in_flight_count);
  if (std::ranges::find(flying, step) == flying.end()) {
    return refused("complete: step ", index_of(step), " is not in flight");
  }
  const auto later =
      std::remove_if(flying.begin(), flying.end(), [&](StepNumber n) { return n <= step; });
  s.in_flight_count = static_cast<int>(later - flying.begin());
  s.pool.complete(step);
  for (const Request& r : s.requests) {
    if (!r.exists) continue;
    Content& c = s.content(r);
    s.settle_writes(c, step);
    if (r.state != RequestState::kActive) continue;
    s.publish(c);
    s.expire(c);
  }
  return {};
}

}  // namespace kvattn
