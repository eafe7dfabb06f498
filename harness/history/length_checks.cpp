// Who exists, in which state, and how long it is; and whether two states are the same.
#include <fmt/format.h>

#include <algorithm>

#include "harness/case/pages.h"
#include "harness/history/state_checks.h"

namespace kv {
namespace {

HistoryFinding wrong(RequestId request, std::string message) {
  return {.check = CheckClass::kLengths, .message = std::move(message), .request = request};
}

constexpr std::string_view kLifeNames[] = {"active", "preempted", "swapped"};
std::string_view name_of(Life life) { return kLifeNames[static_cast<size_t>(life)]; }

template <class T>
std::string unequal(RequestId request, const char* what, T want, T got) {
  return fmt::format("request {}: expected {} {}, got {}", request.value, what, want, got);
}

MaybeFinding check_identity(const ModelRequest& want, const RequestState& got) {
  const RequestId id = want.request;
  if (got.life != want.life) {
    return wrong(id, unequal(id, "state", name_of(want.life), name_of(got.life)));
  }
  if (got.owner != want.owner) return wrong(id, unequal(id, "owner", want.owner, got.owner));
  if (got.handle != want.handle) return wrong(id, unequal(id, "handle", want.handle, got.handle));
  if (got.side_input != want.side_input) {
    return wrong(id, unequal(id, "side input", want.side_input, got.side_input));
  }
  if (got.position_offset != want.position_offset) {
    return wrong(id, unequal(id, "position offset", want.position_offset, got.position_offset));
  }
  return std::nullopt;
}

// Which request's table a page was met in last.
using PageMarks = std::vector<uint64_t>;

// A page that stands twice in the table that has this mark.
std::optional<int32_t> find_twice(const std::vector<int32_t>& table, uint64_t mark,
                                  PageMarks& marks) {
  for (const int32_t page : table) {
    const auto index = static_cast<size_t>(page);
    if (page < 0 || index >= marks.size()) continue;  // those that there are not, others find
    if (marks[index] == mark) return page;
    marks[index] = mark;
  }
  return std::nullopt;
}

// Each slot has its place, but for what no window can see any more.
MaybeFinding check_tables(const ModelRequest& want, const RequestState& got,
                          const EngineState& state, const std::vector<CacheGroup>& groups,
                          uint64_t& mark, PageMarks& marks) {
  const RequestId id = want.request;
  const uint64_t pages = pages_for(got.length, state.page_slots);
  for (size_t g = 0; g < got.tables.size(); ++g) {
    const std::vector<int32_t>& table = got.tables[g];
    if (table.size() != pages) {
      return wrong(id, fmt::format("request {}: expected {} pages for {} slots in group {}, got {}",
                                   id.value, pages, got.length, g, table.size()));
    }
    const int64_t window = groups[g].window_left;
    for (uint64_t p = 0; p < pages; ++p) {
      const auto end = static_cast<int64_t>((p + 1) * state.page_slots);
      const bool may_be_gone = window >= 0 && end <= static_cast<int64_t>(want.settled) - window;
      if (table[p] >= 0 || may_be_gone) continue;
      HistoryFinding found =
          wrong(id, fmt::format("request {}: page {} of group {} is gone, but the window of {} "
                                "still sees its slots",
                                id.value, p, g, window));
      found.slot = p * state.page_slots;
      return found;
    }
    const auto twice = find_twice(table, ++mark, marks);
    if (!twice) continue;
    HistoryFinding found =
        wrong(id, fmt::format("request {}: page {} stands twice in its table", id.value, *twice));
    found.page = static_cast<uint32_t>(*twice);
    return found;
  }
  return std::nullopt;
}

MaybeFinding check_batch_slots(const EngineState& state, uint32_t batch_slots) {
  std::vector<bool> taken(batch_slots, false);
  for (const RequestState& r : state.requests) {
    const int64_t slot = r.batch_slot;
    const bool fits = r.life == Life::kActive
                          ? slot >= 0 && slot < int64_t{batch_slots} && !taken[slot]
                          : slot == -1;
    if (!fits) {
      return wrong(
          r.request,
          fmt::format("request {} ({}): expected {}, got batch slot {}", r.request.value,
                      name_of(r.life),
                      r.life == Life::kActive ? "a batch slot of its own" : "no batch slot", slot));
    }
    if (slot >= 0) taken[slot] = true;
  }
  return std::nullopt;
}

// With a draft model each cache may number its own steps.
MaybeFinding check_flying(const EngineState& state, const Model& model, bool draft) {
  std::vector<uint64_t> flying;
  for (const FlyingStep& step : model.in_flight()) {
    if (step.draft == draft) flying.push_back(step.number);
  }
  const bool same = model.engine().draft_layers > 0 ? flying.size() == state.in_flight.size()
                                                    : flying == state.in_flight;
  if (same) return std::nullopt;
  return HistoryFinding{
      .check = CheckClass::kLengths,
      .message = fmt::format("expected steps [{}] in flight, got [{}]", fmt::join(flying, ", "),
                             fmt::join(state.in_flight, ", "))};
}

// In whatever order.
bool same_pages(std::vector<uint32_t> a, std::vector<uint32_t> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

}  // namespace

MaybeFinding check_lengths(const EngineState& state, const Model& model, bool draft) {
  const std::vector<CacheGroup> draft_groups = {{.layers = model.engine().draft_layers}};
  const std::vector<CacheGroup>& groups = draft ? draft_groups : model.groups();
  if (state.group_count != groups.size() ||
      state.page_slots != model.history_case().pool.page_slots) {
    return HistoryFinding{
        .check = CheckClass::kLengths,
        .message = fmt::format("expected {} groups of pages of {} slots, got {} "
                               "and {}",
                               groups.size(), model.history_case().pool.page_slots,
                               state.group_count, state.page_slots)};
  }
  for (const RequestState& got : state.requests) {
    if (model.find(got.request) == nullptr) {
      return wrong(got.request, fmt::format("request {} is still there, expected it to be gone",
                                            got.request.value));
    }
  }
  PageMarks marks(std::max(state.page_count, state.host_page_count), 0);
  uint64_t mark = 0;
  for (const auto& [id, want] : model.requests()) {
    const RequestState* got = state.find(id);
    const uint64_t length = draft ? want.draft.size() : want.slots.size();
    if (got == nullptr) {
      if (draft && length == 0) continue;
      return wrong(id, fmt::format("request {} is gone, expected {} slots", id.value, length));
    }
    if (draft && want.life != Life::kActive) continue;
    if (got->length != length) return wrong(id, unequal(id, "length", length, got->length));
    if (!draft) {
      if (auto found = check_identity(want, *got)) return found;
    }
    if (auto found = check_tables(want, *got, state, groups, mark, marks)) return found;
  }
  if (auto found = check_flying(state, model, draft)) return found;
  if (draft) return std::nullopt;
  return check_batch_slots(state, model.engine().batch_slots);
}

std::string first_difference(const EngineState& before, const EngineState& after) {
  if (before.references != after.references) return "reference counts";
  if (!same_pages(before.free, after.free)) return "the free pages";
  if (!same_pages(before.fenced, after.fenced)) return "the fenced pages";
  if (before.cached != after.cached) return "the cached pages";
  if (before.requests != after.requests) return "the requests";
  if (before.prefixes != after.prefixes) return "the published prefixes";
  if (!same_pages(before.host_free, after.host_free)) return "the free host pages";
  if (before.in_flight != after.in_flight) return "the steps in flight";
  return "";
}

}  // namespace kv
