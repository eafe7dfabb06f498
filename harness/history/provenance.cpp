#include "harness/history/provenance.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/history/token_path.h"

namespace kv {
namespace {

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

MaybeFinding Provenance::compare(CacheKind cache, const std::vector<SlotPlace>& places,
                                 const std::vector<Expected>& expected) {
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
  return compare(touched.draft ? CacheKind::kDraft : CacheKind::kTarget, places_, expected_);
}

MaybeFinding Provenance::check_prefixes(const EngineState& state, bool everything) {
  // The end of each prefix: history and number of slots.
  std::vector<std::pair<uint64_t, uint64_t>> ends;
  places_.clear();
  expected_.clear();
  std::map<uint32_t, uint64_t> now;
  for (const PrefixState& prefix : state.prefixes) {
    auto [history, slot] =
        prefix.parent < 0 ? std::pair(path_root(case_.data.seed, prefix.side_input), uint64_t{0})
                          : ends[static_cast<size_t>(prefix.parent)];
    std::vector<StoredToken> tokens;
    for (const uint64_t token : prefix.tokens) {
      const uint64_t before = history;
      history = path_next(before, token, slot);
      tokens.push_back({.token = token,
                        .history = history,
                        .previous = slot == 0 ? 0 : before,
                        .position = prefix.position_offset + static_cast<int64_t>(slot)});
      ++slot;
    }
    ends.emplace_back(history, slot);
    uint32_t layer = 0;
    for (size_t g = 0; g < groups_.size(); layer += groups_[g].layers, ++g) {
      if (prefix.pages[g] < 0) continue;
      const auto page = static_cast<uint32_t>(prefix.pages[g]);
      now[page] = history;
      const auto known = verified_.find(page);
      if (!everything && known != verified_.end() && known->second == history) continue;
      for (uint32_t l = layer; l < layer + groups_[g].layers; ++l) {
        for (size_t i = 0; i < tokens.size(); ++i) {
          want({.by_page = true, .holder = page, .slot = i, .layer = l}, {tokens[i], {.layer = l}});
        }
      }
    }
  }
  verified_ = std::move(now);
  return compare(CacheKind::kTarget, places_, expected_);
}

}  // namespace kv
