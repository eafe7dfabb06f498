// What rows attended to: the tokens' own K and V, or what the cache holds of them.
#include <algorithm>

#include "harness/history/values.h"

namespace kv {
namespace {

constexpr size_t kPlacesRead = 1u << 10;  // at once: a bound of one message

/// Slots that a request holds before the call may hold something else after it.
bool may_change_slots(const Call& call) {
  return !std::holds_alternative<call::Step>(call) && !std::holds_alternative<call::Fork>(call) &&
         !std::holds_alternative<call::Save>(call);
}

std::vector<RequestId> changed_by(const Call& call) {
  if (may_change_slots(call)) return requests_of(call);
  std::vector<RequestId> cancelled;
  if (const auto* step = std::get_if<call::Step>(&call)) {
    for (const call::StepRow& row : step->rows) {
      if (row.cancel_before_layer > 0) cancelled.push_back(row.request);
    }
  }
  return cancelled;
}

}  // namespace

void Values::outdate(const Call& call) {
  if (noted_.empty()) return;
  for (const RequestId request : changed_by(call)) {
    for (Step& step : noted_) {
      for (Row& row : step.rows) row.is_outdated |= row.request == request;
    }
  }
}

bool Values::is_held(const Row& row, const Model& model) const {
  if (row.is_gone || row.is_outdated) return false;
  const ModelRequest* r = model.find(row.request);
  return r != nullptr && r->life == Life::kActive;
}

std::vector<Touched> Values::due(const Model& model) const {
  std::vector<Touched> due;
  if (!model.in_flight().empty()) return due;
  for (const Step& step : noted_) {
    for (const Row& row : step.rows) {
      if (!step.judged || !is_held(row, model)) continue;
      due.push_back({row.request, step.draft, 0, row.slots.size()});
    }
  }
  return due;
}

void Values::make_content(const LayerRows& at) {
  const std::vector<StoredToken>& slots = at.row->slots;
  const size_t key_bytes = content_.key_bytes(), value_bytes = content_.value_bytes();
  known_.assign(slots.size(), 1);
  keys_.resize(slots.size() * key_bytes);
  values_.resize(slots.size() * value_bytes);
  for (size_t i = 0; i < slots.size(); ++i) {
    content_.key(slots[i], at.layer, std::span(keys_).subspan(i * key_bytes, key_bytes));
    content_.value(slots[i], at.layer, std::span(values_).subspan(i * value_bytes, value_bytes));
  }
}

void Values::read_held(const LayerRows& at, Engine& engine) {
  const size_t length = at.row->slots.size(), page_slots = case_.pool.page_slots;
  const size_t scales = content_.has_scales() ? length * case_.shape.kv_heads : 0;
  known_.assign(length, 0);
  keys_.resize(length * content_.stored_key_bytes());
  values_.resize(length * content_.stored_value_bytes());
  key_scales_.assign(scales, 1);
  value_scales_.assign(scales, 1);
  if (!at.is_held) return;
  // Page by page: a window may have let some of them go.
  for (size_t begin = 0; begin < length; begin += kPlacesRead * page_slots) {
    std::vector<SlotPlace> places;
    const size_t end = std::min(length, begin + kPlacesRead * page_slots);
    for (size_t slot = begin; slot < end; slot += page_slots) {
      places.push_back({.holder = at.row->request.value,
                        .slot = slot,
                        .layer = at.layer.layer,
                        .slots = static_cast<uint32_t>(std::min(page_slots, end - slot))});
    }
    const auto cache = at.layer.draft ? CacheKind::kDraft : CacheKind::kTarget;
    const std::vector<SlotBytes> got = engine.read(cache, places);
    for (size_t i = 0; i < std::min(got.size(), places.size()); ++i) keep_held(places[i], got[i]);
  }
}

void Values::keep_held(const SlotPlace& place, const SlotBytes& got) {
  const size_t heads = content_.has_scales() ? case_.shape.kv_heads : 0, slots = place.slots;
  const size_t key_bytes = content_.stored_key_bytes();
  const size_t value_bytes = content_.stored_value_bytes();
  const bool is_whole = got.status == CallStatus::kOk && got.key.size() == slots * key_bytes &&
                        got.value.size() == slots * value_bytes &&
                        got.key_scales.size() == slots * heads &&
                        got.value_scales.size() == slots * heads;
  if (!is_whole) return;
  const auto put = [&place](const auto& from, auto& to, size_t each) {
    std::ranges::copy(from, to.begin() + static_cast<ptrdiff_t>(place.slot * each));
  };
  put(got.key, keys_, key_bytes);
  put(got.value, values_, value_bytes);
  put(got.key_scales, key_scales_, heads);
  put(got.value_scales, value_scales_, heads);
  std::fill_n(known_.begin() + static_cast<ptrdiff_t>(place.slot), slots, uint8_t{1});
}

bool Values::sees_unread(const std::vector<uint8_t>& visible) const {
  for (size_t slot = 0; slot < visible.size(); ++slot) {
    if (visible[slot] != 0 && known_[slot] == 0) return true;
  }
  return false;
}

Values::HeadCache Values::head_cache(uint32_t kv_head) const {
  const uint32_t heads = case_.shape.kv_heads;
  const size_t key_bytes = content_.stored_key_bytes();
  const size_t value_bytes = content_.stored_value_bytes();
  HeadCache cache;
  for (size_t slot = 0; slot < known_.size(); ++slot) {
    const size_t key = slot * key_bytes + kv_head * (key_bytes / heads);
    const size_t value = slot * value_bytes + kv_head * (value_bytes / heads);
    cache.keys.push_back(known_[slot] == 0 ? nullptr : keys_.data() + key);
    cache.values.push_back(known_[slot] == 0 ? nullptr : values_.data() + value);
    if (!content_.has_scales()) continue;
    cache.key_scales.push_back(key_scales_[slot * heads + kv_head]);
    cache.value_scales.push_back(value_scales_[slot * heads + kv_head]);
  }
  return cache;
}

// Q on its way to the scores.
void Values::rotate(int64_t position, reference::QueryRow& row,
                    reference::RotatedRow& rotated) const {
  std::vector<double> source(case_.shape.head_dim_k);
  decode_row(case_.shape.query_dtype, row.query, source.size(), source.data());
  rotated = stored_.rotated_query(position, source);
  row.rotated = rotated.value;
  row.rotated_error = rotated.error;
}

}  // namespace kv
