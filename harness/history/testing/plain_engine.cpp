#include "harness/history/testing/plain_engine.h"

#include <algorithm>
#include <cstring>

namespace kv {
namespace {

uint64_t pages_for(uint64_t slots, uint64_t page_slots) {
  return (slots + page_slots - 1) / page_slots;
}

Shape as_stored(Shape shape, Fault fault) {
  if (fault != Fault::kOtherPairing || shape.rope.pairing == RopePairing::kNone) return shape;
  const bool is_neox = shape.rope.pairing == RopePairing::kNeox;
  shape.rope.pairing = is_neox ? RopePairing::kInterleaved : RopePairing::kNeox;
  return shape;
}

}  // namespace

PlainEngine::PlainEngine(const Case& c, Fault fault, ShiftedKey shifted)
    : case_(c),
      fault_(fault),
      shifted_(shifted),
      content_(c),
      store_(c, as_stored(c.shape, fault)) {
  target_.page_count = c.pool.page_count;
  target_.groups = cache_groups(c).size();
  draft_.page_count = c.engine->draft_page_count;
  for (Cache* cache : {&target_, &draft_}) {
    cache->references.resize(cache->page_count, 0);
    cache->cells.assign(cache->page_count, Cells(c.pool.page_slots));
    for (uint32_t page = cache->page_count; page > 0; --page) cache->free.push_back(page - 1);
  }
  for (uint32_t page = c.engine->host_page_count; page > 0; --page) host_free_.push_back(page - 1);
}

Answer PlainEngine::perform(const Call& call) {
  Answer answer = std::visit([this](const auto& c) { return act(c); }, call);
  if (fault_ == Fault::kRefuseSilently && answer.status == CallStatus::kRefused) {
    answer.message.clear();
  }
  return answer;
}

Answer PlainEngine::refuse(const char* why) const {
  return {.status = CallStatus::kRefused, .message = why};
}
Answer PlainEngine::no_room() const {
  return {.status = CallStatus::kExhausted, .message = "there is no room"};
}

uint64_t PlainEngine::worst_pages(const Request& r) const {
  return pages_for(r.admission.slots_max, case_.pool.page_slots) * target_.groups;
}

// Of the active requests, and so many pages more.
bool PlainEngine::fits_budget(uint64_t more) const {
  if (fault_ == Fault::kAdmitAnything) return true;
  for (const auto& [id, r] : requests_) {
    if (r.life == Life::kActive) more += worst_pages(r);
  }
  return more <= static_cast<uint64_t>(case_.pool.overcommit * case_.pool.page_count);
}

PlainEngine::Request* PlainEngine::find(RequestId id) {
  const auto found = requests_.find(id);
  return found == requests_.end() ? nullptr : &found->second;
}
PlainEngine::Request* PlainEngine::active(RequestId id) {
  Request* r = find(id);
  return r != nullptr && r->life == Life::kActive ? r : nullptr;
}

int32_t PlainEngine::free_batch_slot() const {
  const uint32_t slots = case_.engine->batch_slots - leaked_batch_slots_;
  for (int32_t slot = 0; slot < static_cast<int32_t>(slots); ++slot) {
    const bool taken = std::any_of(requests_.begin(), requests_.end(), [slot](const auto& item) {
      return item.second.batch_slot == slot;
    });
    if (!taken) return slot;
  }
  return -1;
}

Answer PlainEngine::admitted(Request& r) {
  return {
      .handle = r.handle, .length = r.target.slots.size(), .draft_length = r.draft.slots.size()};
}

// ---------------------------------------------------------------- pages

// Copied and released side by side, as if nothing were shared.
uint64_t PlainEngine::pages_missing(const Side& side, uint64_t length) const {
  const uint64_t have = pages_for(side.slots.size(), case_.pool.page_slots);
  const uint64_t want = pages_for(length, case_.pool.page_slots);
  return want > have ? want - have : 0;
}

bool PlainEngine::can_take(const Cache& cache, uint64_t pages) {
  if (cache.free.size() + cache.cached.size() < pages) return false;
  if (&cache != &target_ || failing_ == 0) return true;
  const bool fails = pages >= failing_;
  failing_ = fails ? 0 : failing_ - pages;
  return !fails;
}

uint64_t PlainEngine::pages_after(const Cache& cache, uint64_t held) const {
  return cache.free.size() + cache.cached.size() + (flying_.empty() ? held : 0);
}

uint32_t PlainEngine::take(Cache& cache) {
  if (cache.free.empty() && cache.cached.empty()) return 0;  // a fault has lost the pages
  if (cache.free.empty()) {
    cache.free.push_back(cache.cached.front());
    cache.published.erase(cache.cached.front());
    cache.cached.erase(cache.cached.begin());
  }
  const uint32_t page = cache.free.back();
  cache.free.pop_back();
  cache.references[page] = 1;
  return page;
}

void PlainEngine::drop(Cache& cache, uint32_t page) {
  if (cache.references[page] > 0 && --cache.references[page] > 0) return;
  if (!flying_.empty() && fault_ != Fault::kNoFence) {
    cache.published.erase(page);
    cache.fenced.emplace_back(page, flying_.back());
  } else if (cache.published.contains(page)) {
    cache.cached.push_back(page);
  } else {
    cache.free.push_back(page);
  }
}

void PlainEngine::release(Cache& cache, Side& side, uint64_t length) {
  const uint64_t pages = pages_for(length, case_.pool.page_slots);
  for (auto& table : side.tables) {
    for (; table.size() > pages; table.pop_back()) drop(cache, table.back());
  }
  side.slots.resize(std::min<size_t>(side.slots.size(), length));
}

// A page has the scale of the token in its first slot.
PlainCell PlainEngine::cell_of(const Cache& cache, uint32_t page, uint64_t slot,
                               const StoredToken& token) {
  const PlainCell& first = cache.cells[page][0];
  const bool is_page = case_.shape.kv_scale == KvScale::kPage;
  const bool keeps = slot > 0 || (fault_ == Fault::kStaleScale && first.scale_history != 0);
  return {.token = token,
          .turned_too_far = turns_too_far_ ? 1 : 0,
          .scale_history = is_page && keeps ? first.scale_history : token.history};
}

PlainEngine::Cells& PlainEngine::last_page(Cache& cache, const Side& side, size_t group) {
  return cache.cells[side.tables[group].back()];
}

// K of the slots from `begin` on, of which `gap` before them are gone.
void PlainEngine::turn_back(std::vector<StoredToken>& slots, uint64_t begin, int64_t gap) {
  for (uint64_t i = begin; i < slots.size(); ++i) {
    slots[i].turned_back += gap;
    const int64_t turned = fault_ == Fault::kShiftTurnsLess ? gap - 1 : gap;
    store_.note_turned(slots[i], {.gap = gap, .turned = turned});
  }
}

// Appends the slots; the pages are there.
void PlainEngine::put(Cache& cache, Side& side, const std::vector<StoredToken>& slots) {
  const uint64_t page_slots = case_.pool.page_slots;
  side.tables.resize(cache.groups);
  for (const StoredToken& token : slots) {
    const uint64_t slot = side.slots.size();
    side.slots.push_back(token);
    for (auto& table : side.tables) {
      if (slot % page_slots == 0) table.push_back(take(cache));
      PlainCell& cell = cache.cells[table.back()][slot % page_slots];
      cell = cell_of(cache, table.back(), slot % page_slots, token);
      if (fault_ == Fault::kWriteOtherToken && slot > 0 && slots.size() == 1) {
        cell.token = side.slots[slot - 1];
      }
    }
  }
}

void PlainEngine::unpublish(Cache& cache, const Side& side, uint64_t length) {
  if (length >= case_.pool.page_slots) return;
  for (const auto& table : side.tables) {
    if (!table.empty()) cache.published.erase(table[0]);
  }
}

// First pages, one for each key, of group 0.
void PlainEngine::publish() {
  const uint64_t page_slots = case_.pool.page_slots;
  if (!case_.engine->prefix_cache) return;
  for (const auto& [id, r] : requests_) {
    const bool waits = fault_ != Fault::kPublishSpeculation && r.settled < page_slots;
    if (r.life != Life::kActive || r.target.slots.size() < page_slots || waits) continue;
    PrefixState prefix{.side_input = r.admission.side_input,
                       .position_offset = r.admission.position_offset,
                       .tokens = {},
                       .pages = GroupPages(target_.groups, kNoPage)};
    std::vector<uint64_t> tokens;
    bool is_path = true;  // no gap before
    for (uint64_t i = 0; i < page_slots; ++i) {
      const StoredToken& token = r.target.slots[i];
      tokens.push_back(token.token);
      is_path &= token.previous == (i == 0 ? 0 : r.target.slots[i - 1].history) &&
                 token.position == prefix.position_offset + static_cast<int64_t>(i);
    }
    if (fault_ == Fault::kPublishOtherTokens) ++tokens.back();
    prefix.tokens = std::move(tokens);
    uint32_t page = r.target.tables[0][0];
    if (fault_ == Fault::kPublishWithoutPage && !target_.free.empty()) page = target_.free[0];
    const bool known =
        std::any_of(target_.published.begin(), target_.published.end(), [&](const auto& item) {
          return item.second.tokens == prefix.tokens &&
                 item.second.side_input == prefix.side_input &&
                 item.second.position_offset == prefix.position_offset;
        });
    if (!is_path || known || target_.published.contains(page)) continue;
    prefix.pages.set(0, static_cast<int32_t>(page));
    target_.published[page] = std::move(prefix);
  }
}

void PlainEngine::end_steps(uint64_t number) {
  std::erase_if(flying_, [number](uint64_t step) { return step <= number; });
  for (Cache* cache : {&target_, &draft_}) {
    std::erase_if(cache->fenced, [&](const auto& waiting) {
      if (waiting.second > number) return false;
      cache->free.push_back(waiting.first);
      return true;
    });
  }
  if (flying_.empty()) publish();
}

// ---------------------------------------------------------------- what is asked of it

Result<EngineState> PlainEngine::snapshot(CacheKind kind) {
  const bool draft = kind == CacheKind::kDraft;
  const Cache& cache = draft ? draft_ : target_;
  EngineState state{.page_count = cache.page_count,
                    .group_count = static_cast<uint32_t>(cache.groups),
                    .page_slots = case_.pool.page_slots,
                    .host_page_count = draft ? 0 : case_.engine->host_page_count,
                    .references = cache.references,
                    .free = cache.free,
                    .fenced = {},
                    .cached = cache.cached};
  for (const uint64_t step : flying_) {
    const auto& drafts = flying_drafts_;
    const bool is_draft = std::find(drafts.begin(), drafts.end(), step) != drafts.end();
    if (is_draft == draft) state.in_flight.push_back(step);
  }
  for (const auto& [page, step] : cache.fenced) state.fenced.push_back(page);
  if (!draft) state.host_free = host_free_;
  for (const auto& [page, prefix] : cache.published) state.prefixes.push_back(prefix);
  for (const auto& [id, r] : requests_) {
    const Side& side = draft ? r.draft : r.target;
    RequestState out{.request = id,
                     .life = r.life,
                     .batch_slot = r.batch_slot,
                     .owner = r.admission.owner,
                     .handle = r.handle,
                     .side_input = r.admission.side_input,
                     .length = r.life == Life::kPreempted ? 0 : side.slots.size(),
                     .position_offset = r.admission.position_offset};
    const auto& tables = r.life == Life::kSwapped && !draft ? r.host : side.tables;
    out.tables.resize(cache.groups);
    for (size_t g = 0; g < tables.size(); ++g) {
      out.tables[g].assign(tables[g].begin(), tables[g].end());
    }
    state.requests.push_back(std::move(out));
  }
  return state;
}

// The i-th slot of a place.
const PlainCell& PlainEngine::cell(const Cache& cache, const SlotPlace& place, uint32_t i,
                                   size_t group, bool draft) {
  uint32_t page = place.holder;
  uint64_t slot = place.slot + i;
  if (!place.by_page) {
    const Request* r = find(RequestId(place.holder));
    const Side& side = draft ? r->draft : r->target;
    page = side.tables[group][slot / case_.pool.page_slots];
    slot %= case_.pool.page_slots;
  }
  return cache.cells[page][slot];
}

std::vector<SlotBytes> PlainEngine::read(CacheKind kind, std::span<const SlotPlace> places) {
  const bool draft = kind == CacheKind::kDraft;
  const Cache& cache = draft ? draft_ : target_;
  const auto groups =
      draft ? std::vector<CacheGroup>{{.layers = case_.engine->draft_layers}} : cache_groups(case_);
  std::vector<SlotBytes> all;
  for (const SlotPlace& place : places) {
    SlotBytes& bytes = all.emplace_back();
    size_t group = 0;
    for (uint32_t layer = place.layer; layer >= groups[group].layers; ++group) {
      layer -= groups[group].layers;
    }
    ContentLayer layer{.layer = place.layer, .draft = draft};
    const bool swaps = fault_ == Fault::kLayersSwapped && case_.shape.layers > 1 && !draft;
    if (swaps && layer.layer < 2) layer.layer = 1 - layer.layer;
    const size_t key_bytes = content_.stored_key_bytes();
    const size_t value_bytes = content_.stored_value_bytes();
    const size_t scales = content_.has_scales() ? case_.shape.kv_heads : 0;
    bytes.key.resize(place.slots * key_bytes);
    bytes.value.resize(place.slots * value_bytes);
    bytes.key_scales.resize(place.slots * scales);
    bytes.value_scales.resize(place.slots * scales);
    for (uint32_t i = 0; i < place.slots; ++i) {
      const auto key = std::span(bytes.key).subspan(i * key_bytes, key_bytes);
      const auto value = std::span(bytes.value).subspan(i * value_bytes, value_bytes);
      const PlainCell& stored = cell(cache, place, i, group, draft);
      store_.write(stored, layer, false, key,
                   std::span(bytes.key_scales).subspan(i * scales, scales));
      store_.write(stored, layer, true, value,
                   std::span(bytes.value_scales).subspan(i * scales, scales));
      if (fault_ == Fault::kValueIsKey) std::ranges::copy(key.first(value_bytes), value.begin());
    }
  }
  return all;
}

}  // namespace kv
