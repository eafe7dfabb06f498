#include "harness/history/provenance.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/history/token_path.h"

namespace kv {
namespace {

constexpr size_t kSlotsRead = 1u << 16;  // at once: a bound of one message

// The first bytes of both, for a person.
std::string bytes_text(std::span<const std::byte> bytes) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(bytes.size(), 8); ++i) {
    text += fmt::format("{:02x}", static_cast<unsigned>(bytes[i]));
  }
  return text;
}

}  // namespace

Provenance::Provenance(const Case& c, Engine& engine)
    : case_(c), engine_(engine), content_(c), groups_(cache_groups(c)) {}

void Provenance::want(const SlotPlace& place, const Expected& expected) {
  places_.push_back(place);
  expected_.push_back(expected);
}

MaybeFinding Provenance::compare_all(CacheKind cache) {
  for (size_t begin = 0; begin < places_.size(); begin += kSlotsRead) {
    const size_t count = std::min(kSlotsRead, places_.size() - begin);
    auto found = compare(cache, std::span<const SlotPlace>(places_).subspan(begin, count),
                         std::span<const Expected>(expected_).subspan(begin, count));
    if (found) return found;
  }
  return std::nullopt;
}

MaybeFinding Provenance::compare(CacheKind cache, std::span<const SlotPlace> places,
                                 std::span<const Expected> expected) {
  const std::vector<SlotBytes> got = engine_.read(cache, places);
  slots_read_ += places.size();
  for (size_t i = 0; i < places.size(); ++i) {
    const SlotPlace& place = places[i];
    const std::string where = fmt::format(
        "{} {}, slot {}, layer {}{}", place.by_page ? "published page" : "request", place.holder,
        place.slot, place.layer, cache == CacheKind::kDraft ? " of the draft model" : "");
    HistoryFinding found{.check = place.by_page ? CheckClass::kIndex : CheckClass::kProvenance,
                         .slot = place.slot,
                         .layer = place.layer,
                         .draft = cache == CacheKind::kDraft};
    if (place.by_page) {
      found.page = place.holder;
    } else {
      found.request = RequestId(place.holder);
    }
    if (i >= got.size() || got[i].status != CallStatus::kOk) {
      found.message = where + ": cannot be read";
      return found;
    }
    for (const bool value : {false, true}) {
      buffer_.resize(value ? content_.value_bytes() : content_.key_bytes());
      if (value) {
        content_.value(expected[i].token, expected[i].layer, buffer_);
      } else {
        content_.key(expected[i].token, expected[i].layer, buffer_);
      }
      const std::vector<std::byte>& bytes = value ? got[i].value : got[i].key;
      if (bytes == buffer_) continue;
      found.message = fmt::format("{}: {} is not its token's (position {}): expected {}, got {}",
                                  where, value ? "V" : "K", expected[i].token.position,
                                  bytes_text(buffer_), bytes_text(bytes));
      return found;
    }
  }
  return std::nullopt;
}

MaybeFinding Provenance::check_slots(const Model& model, const EngineState& state,
                                     const Touched& touched) {
  const ModelRequest* r = model.find(touched.request);
  const RequestState* held = state.find(touched.request);
  if (r == nullptr || held == nullptr || r->life != Life::kActive) return std::nullopt;
  const std::vector<StoredToken>& slots = touched.draft ? r->draft : r->slots;
  const std::vector<CacheGroup> draft_groups = {{.layers = model.engine().draft_layers}};
  places_.clear();
  expected_.clear();
  uint32_t layer = 0;
  const auto& groups = touched.draft ? draft_groups : groups_;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (uint32_t l = 0; l < groups[g].layers; ++l, ++layer) {
      for (uint64_t slot = touched.begin; slot < std::min<uint64_t>(touched.end, slots.size());
           ++slot) {
        if (held->tables[g][slot / state.page_slots] < 0) continue;
        want({.holder = r->request.value, .slot = slot, .layer = layer},
             {slots[slot], {.layer = layer, .draft = touched.draft}});
      }
    }
  }
  return compare_all(touched.draft ? CacheKind::kDraft : CacheKind::kTarget);
}

uint64_t Provenance::follow(const PrefixState& prefix, uint64_t before, uint64_t slot) {
  Path& path = paths_[prefix.tokens.all().data()];
  if (path.check == 0 || path.before != before || path.slot != slot) {
    path = {.tokens = prefix.tokens, .before = before, .slot = slot, .after = before};
    for (const uint64_t token : prefix.tokens.all()) {
      path.after = path_next(path.after, token, slot++);
    }
  }
  path.check = checks_;
  return path.after;
}

void Provenance::forget_paths(size_t prefixes) {
  if (paths_.size() <= 2 * prefixes + 64) return;
  std::erase_if(paths_, [this](const auto& path) { return path.second.check < checks_; });
}

void Provenance::want_page(const PrefixState& prefix, uint32_t group, uint64_t before,
                           uint64_t slot) {
  uint32_t layer = 0;
  for (uint32_t g = 0; g < group; ++g) layer += groups_[g].layers;
  const auto page = static_cast<uint32_t>(prefix.pages[group]);
  uint64_t in_page = 0;
  for (const uint64_t token : prefix.tokens.all()) {
    const uint64_t history = path_next(before, token, slot);
    const StoredToken stored{.token = token,
                             .history = history,
                             .previous = slot == 0 ? 0 : before,
                             .position = prefix.position_offset + static_cast<int64_t>(slot)};
    for (uint32_t l = layer; l < layer + groups_[group].layers; ++l) {
      want({.by_page = true, .holder = page, .slot = in_page, .layer = l}, {stored, {.layer = l}});
    }
    before = history;
    ++slot, ++in_page;
  }
}

MaybeFinding Provenance::check_prefixes(const EngineState& state, bool everything) {
  struct End {
    uint64_t history, slots;
  };
  std::vector<End> ends;  // of each prefix
  ends.reserve(state.prefixes.size());
  places_.clear();
  expected_.clear();
  ++checks_;
  std::unordered_map<uint32_t, uint64_t> now;
  now.reserve(state.prefixes.size());
  for (const PrefixState& prefix : state.prefixes) {
    const auto [before, slot] = prefix.parent < 0
                                    ? End{path_root(case_.data.seed, prefix.side_input), 0}
                                    : ends[static_cast<size_t>(prefix.parent)];
    const uint64_t history = follow(prefix, before, slot);
    ends.push_back({history, slot + prefix.tokens.all().size()});
    for (uint32_t g = 0; g < groups_.size(); ++g) {
      if (prefix.pages[g] < 0) continue;
      const auto page = static_cast<uint32_t>(prefix.pages[g]);
      now[page] = history;
      const auto known = verified_.find(page);
      if (everything || known == verified_.end() || known->second != history) {
        want_page(prefix, g, before, slot);
      }
    }
  }
  forget_paths(state.prefixes.size());
  verified_ = std::move(now);
  return compare_all(CacheKind::kTarget);
}

}  // namespace kv
