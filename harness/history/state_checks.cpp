#include "harness/history/state_checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace kv {
namespace {

HistoryFinding wrong_page(CheckClass check, uint32_t page, std::string message) {
  return {.check = check, .message = std::move(message), .page = page};
}

// Which list a page is in.
enum class Place : uint8_t { kNowhere, kFree, kFenced, kCached, kOwned };
constexpr std::string_view kPlaceNames[] = {"nowhere", "free", "fenced", "cached", "owned"};
std::string_view name_of(Place place) { return kPlaceNames[static_cast<size_t>(place)]; }

// Puts each page where the state says it is; the first contradiction.
class PlaceMap {
 public:
  explicit PlaceMap(const EngineState& state) : places_(state.page_count, Place::kNowhere) {
    for (uint32_t page = 0; page < state.page_count; ++page) {
      if (state.references[page] > 0) places_[page] = Place::kOwned;
    }
    put(state.free, Place::kFree);
    put(state.fenced, Place::kFenced);
    put(state.cached, Place::kCached);
  }
  MaybeFinding take_finding() { return std::move(finding_); }
  const std::vector<Place>& places() const { return places_; }

 private:
  void put(const std::vector<uint32_t>& pages, Place place) {
    for (const uint32_t page : pages) {
      if (finding_) return;
      if (page >= places_.size()) {
        finding_ = wrong_page(CheckClass::kPartition, page,
                              fmt::format("page {} is {}, expected one below {}", page,
                                          name_of(place), places_.size()));
      } else if (places_[page] != Place::kNowhere) {
        finding_ = wrong_page(CheckClass::kPartition, page,
                              fmt::format("page {} is {} and {} at once, expected one of them",
                                          page, name_of(places_[page]), name_of(place)));
      } else {
        places_[page] = place;
      }
    }
  }

  std::vector<Place> places_;
  MaybeFinding finding_;
};

MaybeFinding check_host_pages(const EngineState& state) {
  std::vector<uint32_t> seen(state.host_page_count, 0);
  const auto count = [&](uint32_t page, const char* where) -> MaybeFinding {
    if (page < seen.size() && ++seen[page] == 1) return std::nullopt;
    return wrong_page(
        CheckClass::kPartition, page,
        fmt::format("host page {} of {} is {}, expected each page once", page, seen.size(), where));
  };
  for (const uint32_t page : state.host_free) {
    if (auto found = count(page, "free a second time")) return found;
  }
  for (const RequestState& r : state.requests) {
    if (r.life != Life::kSwapped) continue;
    for (const uint32_t page : pages_of(r)) {
      if (auto found = count(page, "held a second time")) return found;
    }
  }
  const auto lost = std::find(seen.begin(), seen.end(), 0u);
  if (lost == seen.end()) return std::nullopt;
  const auto page = static_cast<uint32_t>(lost - seen.begin());
  return wrong_page(CheckClass::kPartition, page,
                    fmt::format("host page {} is lost: neither free nor held", page));
}

std::vector<bool> published_pages(const EngineState& state) {
  std::vector<bool> published(state.page_count, false);
  for (const PrefixState& prefix : state.prefixes) {
    for (const int32_t page : prefix.pages) {
      if (page >= 0 && static_cast<uint32_t>(page) < state.page_count) published[page] = true;
    }
  }
  return published;
}

}  // namespace

std::vector<uint32_t> pages_of(const RequestState& request) {
  std::vector<uint32_t> pages;
  for (const auto& table : request.tables) {
    for (const int32_t page : table) {
      if (page >= 0) pages.push_back(static_cast<uint32_t>(page));
    }
  }
  return pages;
}

MaybeFinding check_references(const EngineState& state) {
  std::vector<uint32_t> counted(state.page_count, 0);
  std::vector<int64_t> group_of(state.page_count, -1);
  for (const RequestState& r : state.requests) {
    if (r.life != Life::kActive) continue;
    for (size_t g = 0; g < r.tables.size(); ++g) {
      for (const int32_t entry : r.tables[g]) {
        if (entry == kNoPage) continue;
        const auto page = static_cast<uint32_t>(entry);
        HistoryFinding found = wrong_page(CheckClass::kReferences, page, "");
        found.request = r.request;
        if (page >= state.page_count) {
          found.message = fmt::format("request {} holds page {}, expected one below {}",
                                      r.request.value, entry, state.page_count);
          return found;
        }
        if (group_of[page] >= 0 && group_of[page] != static_cast<int64_t>(g)) {
          found.message = fmt::format("page {} is held in groups {} and {}, expected one", page,
                                      group_of[page], g);
          return found;
        }
        group_of[page] = static_cast<int64_t>(g);
        ++counted[page];
      }
    }
  }
  for (uint32_t page = 0; page < state.page_count; ++page) {
    if (counted[page] == state.references[page]) continue;
    return wrong_page(CheckClass::kReferences, page,
                      fmt::format("page {}: expected {} references, as many as block tables hold "
                                  "it, got {}",
                                  page, counted[page], state.references[page]));
  }
  return std::nullopt;
}

MaybeFinding check_partition(const EngineState& state) {
  PlaceMap map(state);
  if (auto found = map.take_finding()) return found;
  for (uint32_t page = 0; page < state.page_count; ++page) {
    if (map.places()[page] != Place::kNowhere) continue;
    return wrong_page(CheckClass::kPartition, page,
                      fmt::format("page {} is lost: not free, fenced, cached or owned", page));
  }
  return check_host_pages(state);
}

MaybeFinding check_write_set(const EngineState& before, const EngineState& after,
                             const call::Step& step) {
  const std::vector<bool> published = published_pages(before);
  for (const call::StepRow& row : step.rows) {
    const RequestState* r = after.find(row.request);
    const RequestState* was = before.find(row.request);
    if (r == nullptr || row.append == 0) continue;
    const uint64_t first = row.length / after.page_slots;
    const uint64_t last = (row.length + row.append - 1) / after.page_slots;
    for (size_t g = 0; g < r->tables.size(); ++g) {
      const std::vector<int32_t>& table = r->tables[g];
      for (uint64_t p = first; p <= last && p < table.size(); ++p) {
        if (table[p] < 0) continue;  // written and let go again, behind the window
        const auto page = static_cast<uint32_t>(table[p]);
        const bool kept = was != nullptr && g < was->tables.size() && p < was->tables[g].size() &&
                          was->tables[g][p] == table[p];
        const bool is_published = kept && published[page];
        if (after.references[page] == 1 && !is_published) continue;
        HistoryFinding found = wrong_page(
            CheckClass::kWriteSet, page,
            fmt::format("the step writes slots {} to {} of request {} into page {}, which {}: "
                        "expected a page that nobody else can read",
                        row.length, row.length + row.append - 1, row.request.value, page,
                        is_published ? "is published"
                                     : fmt::format("has {} references", after.references[page])));
        found.request = row.request;
        found.slot = row.length;
        return found;
      }
    }
  }
  return std::nullopt;
}

MaybeFinding check_index_shape(const EngineState& state,
                               const std::vector<uint32_t>& flying_writes) {
  std::vector<bool> published(state.page_count, false), waiting(state.page_count, false);
  for (const std::vector<uint32_t>* list : {&state.free, &state.fenced}) {
    for (const uint32_t page : *list) waiting[page] = true;
  }
  for (const PrefixState& prefix : state.prefixes) {
    for (const int32_t entry : prefix.pages) {
      if (entry == kNoPage) continue;
      const auto page = static_cast<uint32_t>(entry);
      std::string message;
      if (page >= state.page_count) {
        message =
            fmt::format("the index names page {}, expected one below {}", entry, state.page_count);
      } else if (published[page]) {
        message = fmt::format("page {} is published twice, expected one identity", page);
      } else if (waiting[page]) {
        message =
            fmt::format("page {} is published, but free or fenced: its bytes may change", page);
      } else if (std::find(flying_writes.begin(), flying_writes.end(), page) !=
                 flying_writes.end()) {
        message =
            fmt::format("page {} is published before the step that writes it has completed", page);
      }
      if (!message.empty()) return wrong_page(CheckClass::kIndex, page, std::move(message));
      published[page] = true;
    }
    if (prefix.parent < 0) continue;
    const PrefixState& parent = state.prefixes[static_cast<size_t>(prefix.parent)];
    if (parent.side_input == prefix.side_input &&
        parent.position_offset == prefix.position_offset) {
      continue;
    }
    return HistoryFinding{.check = CheckClass::kIndex,
                          .message = fmt::format("a prefix with side input {} follows one with {}",
                                                 prefix.side_input, parent.side_input)};
  }
  for (const uint32_t page : state.cached) {
    if (published[page]) continue;
    return wrong_page(CheckClass::kIndex, page,
                      fmt::format("page {} is cached, but no prefix leads to it", page));
  }
  return std::nullopt;
}

namespace {

/// Who holds a page, and in whose eyes its slots may still be taken back.
struct Holders {
  const ModelRequest* unsettled = nullptr;
  bool settled = false;
};
void add_holders(int32_t page, const EngineState& state, const Model& model, Holders& holders) {
  for (const RequestState& r : state.requests) {
    if (r.life != Life::kActive) continue;
    const ModelRequest* known = model.find(r.request);
    for (const auto& table : r.tables) {
      const auto found = std::find(table.begin(), table.end(), page);
      if (found == table.end()) continue;
      const auto end = static_cast<uint64_t>(found - table.begin() + 1) * state.page_slots;
      if (known == nullptr || end <= known->settled) {
        holders.settled = true;
      } else {
        holders.unsettled = known;
      }
    }
  }
}

}  // namespace

MaybeFinding check_settled(const EngineState& before, const EngineState& after,
                           const Model& model) {
  const std::vector<bool> was = published_pages(before);
  for (const PrefixState& prefix : after.prefixes) {
    for (const int32_t page : prefix.pages) {
      const auto number = static_cast<uint32_t>(page);
      if (page < 0 || (number < was.size() && was[number])) continue;
      // Who settled it may have let it go at once, behind a window, or be gone.
      Holders holders;
      add_holders(page, before, model, holders);
      add_holders(page, after, model, holders);
      if (holders.settled || holders.unsettled == nullptr) continue;
      HistoryFinding found = wrong_page(
          CheckClass::kIndex, number,
          fmt::format("page {} of request {} is published, but slots from {} on are speculative",
                      page, holders.unsettled->request.value, holders.unsettled->settled));
      found.request = holders.unsettled->request;
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace kv
