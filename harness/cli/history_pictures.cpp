#include "harness/cli/history_pictures.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/report/html_pictures.h"

namespace kv::cli {
namespace {

enum Owner : uint8_t { kFree, kCached, kFenced, kMine, kMineShared, kShared, kFirstOther };
constexpr uint8_t kOthers = 6;  // colours; then they come again
constexpr size_t kPagesMax = 128;

std::vector<uint8_t> owners_of(const EngineState& state, std::optional<RequestId> mine) {
  std::vector<uint8_t> owners(state.page_count, kFree);
  const auto set = [&owners](uint32_t page, uint8_t owner) {
    if (page < owners.size()) owners[page] = owner;
  };
  for (const uint32_t page : state.cached) set(page, kCached);
  for (const uint32_t page : state.fenced) set(page, kFenced);
  for (const RequestState& r : state.requests) {
    if (r.life != Life::kActive) continue;
    const bool is_mine = mine && r.request == *mine;
    const auto colour = static_cast<uint8_t>(kFirstOther + r.request.value % kOthers);
    for (const auto& table : r.tables) {
      for (const int32_t page : table) {
        if (page < 0 || static_cast<size_t>(page) >= owners.size()) continue;
        uint8_t& owner = owners[static_cast<size_t>(page)];
        const bool held = owner >= kMine, held_by_mine = owner == kMine || owner == kMineShared;
        owner = !held                     ? (is_mine ? uint8_t{kMine} : colour)
                : is_mine || held_by_mine ? uint8_t{kMineShared}
                                          : uint8_t{kShared};
      }
    }
  }
  return owners;
}

std::vector<GridKind> owner_kinds() {
  std::vector<GridKind> kinds = {{"off", "free"},
                                 {"pad", "cached: held by no request, published"},
                                 {"outside", "fenced: a step in flight touches it"},
                                 {"mine", "of the request concerned"},
                                 {"minetoo", "of it, shared"},
                                 {"shared", "shared by others"}};
  for (uint8_t i = 0; i < kOthers; ++i) {
    kinds.push_back({fmt::format("owner{}", i), fmt::format("of another, id {} mod 6", i)});
  }
  return kinds;
}

}  // namespace

std::vector<Grid> history_pictures(const HistoryResult& result) {
  if (!result.finding || result.records.empty()) return {};
  const HistoryFinding& f = *result.finding;
  const size_t all = result.records.size(), shown = std::min(all, kGridColumnsMax);
  const std::span records = std::span(result.records).last(shown);
  Grid g{.title = "Pages of the pool, and whose they are after each call",
         .columns = "call",
         .first_column = all - shown,
         .marked_column = static_cast<int64_t>(all) - 1,
         .kinds = owner_kinds()};
  const size_t pages = records.back().state.page_count;
  for (size_t page = 0; page < std::min(pages, kPagesMax); ++page) {
    g.rows.push_back({.label = fmt::format("page {}", page),
                      .cells = {},
                      .marked = f.page && !f.draft && *f.page == page});
  }
  for (const OpRecord& record : records) {
    const std::vector<uint8_t> owners = owners_of(record.state, f.request);
    for (size_t page = 0; page < g.rows.size(); ++page) {
      g.rows[page].cells.push_back(page < owners.size() ? owners[page] : uint8_t{kFree});
    }
  }
  if (all > shown) g.note = fmt::format("the last {} of {} calls", shown, all);
  if (pages > kPagesMax) {
    g.note +=
        fmt::format("{}the first {} of {} pages", g.note.empty() ? "" : "; ", kPagesMax, pages);
  }
  return {g};
}

}  // namespace kv::cli
