#include "harness/history/provenance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "harness/history/token_path.h"

namespace kv {
namespace {

constexpr uint32_t kSlotsRead = 1u << 16;  // at once: a bound of one message

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
    : case_(c), engine_(engine), content_(c), groups_(cache_groups(c)), written_(c) {}

// As many places as it takes.
void Provenance::want_slots(SlotPlace place, uint64_t end, size_t first_token) {
  while (place.slot < end) {
    place.slots = static_cast<uint32_t>(std::min<uint64_t>(end - place.slot, kSlotsRead));
    wanted_.push_back({place, first_token});
    place.slot += place.slots;
    first_token += place.slots;
  }
}

MaybeFinding Provenance::compare_all(CacheKind cache) {
  for (size_t begin = 0; begin < wanted_.size();) {
    size_t end = begin;
    for (uint64_t slots = 0; end < wanted_.size(); ++end) {
      slots += wanted_[end].place.slots;
      if (slots > kSlotsRead && end > begin) break;
    }
    if (auto found = compare(cache, std::span(wanted_).subspan(begin, end - begin))) return found;
    begin = end;
  }
  return std::nullopt;
}

MaybeFinding Provenance::compare(CacheKind cache, std::span<const Wanted> wanted) {
  places_.clear();
  for (const Wanted& w : wanted) places_.push_back(w.place);
  const std::vector<SlotBytes> got = engine_.read(cache, places_);
  for (size_t i = 0; i < wanted.size(); ++i) {
    slots_read_ += wanted[i].place.slots;
    if (i >= got.size()) return at(cache, wanted[i].place, "cannot be read");
    if (auto found = compare_place(cache, wanted[i], got[i])) return found;
  }
  return std::nullopt;
}

// `what` is wrong with the first slot of `place`.
HistoryFinding Provenance::at(CacheKind cache, SlotPlace place, const char* what) const {
  HistoryFinding found{
      .check = place.by_page ? CheckClass::kIndex : CheckClass::kProvenance,
      .message =
          fmt::format("{} {}, slot {}, layer {}{}: {}",
                      place.by_page ? "published page" : "request", place.holder, place.slot,
                      place.layer, cache == CacheKind::kDraft ? " of the draft model" : "", what),
      .slot = place.slot,
      .layer = place.layer,
      .draft = cache == CacheKind::kDraft};
  if (place.by_page) {
    found.page = place.holder;
  } else {
    found.request = RequestId(place.holder);
  }
  return found;
}

// The first slot that cannot be read by itself; or else all of them together.
MaybeFinding Provenance::find_unreadable(CacheKind cache, const SlotPlace& place) {
  for (uint32_t i = 0; i < place.slots; ++i) {
    SlotPlace one = place;
    one.slot += i;
    one.slots = 1;
    const std::vector<SlotBytes> got = engine_.read(cache, {&one, 1});
    const bool is_read = !got.empty() && got[0].status == CallStatus::kOk;
    if (!is_read) return at(cache, one, "cannot be read");
  }
  return at(cache, place, "cannot be read together with those behind it");
}

MaybeFinding Provenance::compare_place(CacheKind cache, const Wanted& wanted,
                                       const SlotBytes& got) {
  if (got.status != CallStatus::kOk) return find_unreadable(cache, wanted.place);
  const ContentLayer layer{.layer = wanted.place.layer, .draft = cache == CacheKind::kDraft};
  const size_t slots = wanted.place.slots;
  const size_t scales = content_.has_scales() ? slots * case_.shape.kv_heads : 0;
  if (got.key.size() != slots * content_.stored_key_bytes() ||
      got.value.size() != slots * content_.stored_value_bytes() ||
      got.key_scales.size() != scales || got.value_scales.size() != scales) {
    return at(cache, wanted.place, "cannot be read");
  }
  for (size_t i = 0; i < slots; ++i) {
    for (const bool value : {false, true}) {
      const auto fault = find_fault(wanted.first_token + i, layer, value, got, i);
      if (!fault) continue;
      SlotPlace place = wanted.place;
      place.slot += i;
      return at(cache, place, fault->c_str());
    }
  }
  return std::nullopt;
}

std::optional<std::string> Provenance::find_fault(size_t token, ContentLayer layer, bool value,
                                                  const SlotBytes& got, size_t slot) {
  const StoredToken& stored = tokens_[token];
  const size_t bytes = value ? content_.stored_value_bytes() : content_.stored_key_bytes();
  const auto here = std::span(value ? got.value : got.key).subspan(slot * bytes, bytes);
  const char* name = value ? "V" : "K";
  if (written_.changes(value)) {
    const std::span<const float> all = value ? got.value_scales : got.key_scales;
    const size_t heads = content_.has_scales() ? case_.shape.kv_heads : 0;
    const auto fault = written_.find_fault(
        {.token = stored,
         .scale_history = written_.has_page_scales() ? page_histories_[token] : stored.history,
         .layer = layer,
         .value = value},
        here, all.subspan(slot * heads, heads));
    if (!fault) return std::nullopt;
    return fmt::format("{} is not its token's (position {}): {}", name, stored.position, *fault);
  }
  std::vector<std::byte>& expected = value ? expected_value_ : expected_key_;
  expected.resize(bytes);
  if (value) {
    content_.value(stored, layer, expected);
  } else {
    content_.key(stored, layer, expected);
  }
  if (std::memcmp(here.data(), expected.data(), here.size()) == 0) return std::nullopt;
  return fmt::format("{} is not its token's (position {}): expected {}, got {}", name,
                     stored.position, bytes_text(expected), bytes_text(here));
}

void Provenance::note(const Model& model, const call::Step* step) {
  if (!written_.changes(false)) return;
  for (const Turned& turned : model.turned()) written_.note_turned(turned);
  if (step == nullptr) return;
  for (const call::StepRow& row : step->rows) {
    for (size_t i = row.histories.size() - row.append; i < row.histories.size(); ++i) {
      written_.note_appended(row.histories[i], step->draft);
    }
  }
}

// `slots`: of a request, or of a prefix's last page; from `begin` on they are wanted.
void Provenance::want_tokens(std::span<const StoredToken> slots, uint64_t begin) {
  tokens_.insert(tokens_.end(), slots.begin() + static_cast<ptrdiff_t>(begin), slots.end());
  if (!written_.has_page_scales()) return;
  const uint64_t page_slots = case_.pool.page_slots;
  for (uint64_t s = begin; s < slots.size(); ++s) {
    page_histories_.push_back(slots[s / page_slots * page_slots].history);
  }
}

MaybeFinding Provenance::check(const Model& model, const EngineState& state, const Scope& scope) {
  wanted_.clear();
  tokens_.clear();
  page_histories_.clear();
  const bool draft = scope.cache == CacheKind::kDraft;
  for (const Touched& touched : scope.touched) {
    if (touched.draft == draft) want_touched(model, state, touched);
  }
  if (!draft) want_prefixes(state, scope.all_prefixes);
  return compare_all(scope.cache);
}

void Provenance::want_touched(const Model& model, const EngineState& state,
                              const Touched& touched) {
  const ModelRequest* r = model.find(touched.request);
  const RequestState* held = state.find(touched.request);
  if (r == nullptr || held == nullptr || r->life != Life::kActive) return;
  const std::vector<StoredToken>& slots = touched.draft ? r->draft : r->slots;
  const std::vector<CacheGroup> draft_groups = {{.layers = model.engine().draft_layers}};
  const uint64_t end = std::min<uint64_t>(touched.end, slots.size());
  if (touched.begin >= end) return;
  const size_t first_token = tokens_.size();
  want_tokens(std::span(slots).first(end), touched.begin);
  uint32_t layer = 0;
  const auto& groups = touched.draft ? draft_groups : groups_;
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto is_gone = [&](uint64_t slot) {
      return held->tables[g][slot / state.page_slots] < 0;
    };
    for (uint32_t l = 0; l < groups[g].layers; ++l, ++layer) {
      for (uint64_t first = touched.begin; first < end;) {
        const bool gone = is_gone(first);
        uint64_t last = first;  // of those that are alike
        while (last < end && is_gone(last) == gone) {
          last = std::min<uint64_t>(end, (last / state.page_slots + 1) * state.page_slots);
        }
        if (!gone) {
          want_slots({.holder = r->request.value, .slot = first, .layer = layer}, last,
                     first_token + first - touched.begin);
        }
        first = last;
      }
    }
  }
}

uint64_t Provenance::follow(const PrefixState& prefix, uint64_t before, uint64_t slot) {
  const uint64_t number = prefix.tokens.number();
  if (const Path* known = paths_.find(number)) {
    if (known->before == before && known->slot == slot) return paths_.add(number, *known).after;
  }
  Path path{.before = before, .slot = slot, .after = before};
  for (const uint64_t token : prefix.tokens.all()) {
    path.after = path_next(path.after, token, slot++);
  }
  return number == 0 ? path.after : paths_.add(number, path).after;
}

void Provenance::want_page(const PrefixState& prefix, uint32_t group, uint64_t before,
                           uint64_t slot) {
  uint32_t layer = 0;
  for (uint32_t g = 0; g < group; ++g) layer += groups_[g].layers;
  const auto page = static_cast<uint32_t>(prefix.pages[group]);
  const size_t first_token = tokens_.size();
  for (const uint64_t token : prefix.tokens.all()) {
    const uint64_t history = path_next(before, token, slot);
    tokens_.push_back({.token = token,
                       .history = history,
                       .previous = slot == 0 ? 0 : before,
                       .position = prefix.position_offset + static_cast<int64_t>(slot)});
    if (written_.has_page_scales()) {
      page_histories_.push_back(tokens_[first_token].history);
    }
    before = history;
    ++slot;
  }
  for (uint32_t l = layer; l < layer + groups_[group].layers; ++l) {
    want_slots({.by_page = true, .holder = page, .layer = l}, prefix.tokens.size(), first_token);
  }
}

void Provenance::want_prefixes(const EngineState& state, bool everything) {
  struct End {
    uint64_t history, slots;
  };
  std::vector<End> ends;  // of each prefix
  ends.reserve(state.prefixes.size());
  paths_.begin();
  verified_.resize(state.page_count, 0);
  current_.assign(state.page_count, 0);
  for (const PrefixState& prefix : state.prefixes) {
    const auto [before, slot] = prefix.parent < 0
                                    ? End{path_root(case_.data.seed, prefix.side_input), 0}
                                    : ends[static_cast<size_t>(prefix.parent)];
    const uint64_t history = follow(prefix, before, slot);
    ends.push_back({history, slot + prefix.tokens.all().size()});
    for (uint32_t g = 0; g < groups_.size(); ++g) {
      if (prefix.pages[g] < 0) continue;
      const auto page = static_cast<uint32_t>(prefix.pages[g]);
      current_[page] = history;
      if (everything || verified_[page] != history) want_page(prefix, g, before, slot);
    }
  }
  std::swap(verified_, current_);
}

}  // namespace kv
