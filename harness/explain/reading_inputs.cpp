// What the reference computes a reading from.
#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/case/data.h"
#include "harness/case/kv_scales.h"
#include "harness/explain/reading.h"
#include "reference/elementary.h"

namespace kv {

namespace {

const SlotSource& source_of(const Reading& reading, size_t slot, bool value) {
  const bool apart = value && !reading.value_sources.empty();
  return (apart ? reading.value_sources : reading.sources)[slot];
}

}  // namespace

double Scene::scale_of(const Reading& reading, size_t slot, bool value) const {
  if (case_.shape.kv_scale == KvScale::kNone) return 1;
  const SlotSource& from = source_of(reading, slot, value);
  const Sequence& owner = sequence(from.request_row);
  const uint64_t count = owner.slots.size();
  if (from.slot >= count) return std::numeric_limits<double>::quiet_NaN();
  ScalePlace place{reading.layer, value, value ? reading.value_head : reading.key_head};
  uint64_t at = from.slot;
  switch (value ? reading.value_scale : reading.key_scale) {
    case ScaleSource::kOwn:
    case ScaleSource::kTwice:
      break;
    case ScaleSource::kNone:
      return 1;
    case ScaleSource::kNextSlot:
      at = std::min(at + 1, count - 1);
      break;
    case ScaleSource::kPreviousSlot:
      at -= at > 0;
      break;
    case ScaleSource::kNextHead:
      place.head = (place.head + 1) % case_.shape.kv_heads;
      break;
    case ScaleSource::kFirstOfPage:
      at = at / page_slots() * page_slots();
      break;
    case ScaleSource::kOtherTensor:
      place.value = !value;
      break;
  }
  const double scale = slot_scale(case_, owner, at, place);
  const bool twice = (value ? reading.value_scale : reading.key_scale) == ScaleSource::kTwice;
  return twice ? scale * scale : scale;
}

void Scene::turn_query(const Reading& reading, int64_t position, reference::RowInputs& row) const {
  if (reading.rope.pairing == RopePairing::kNone) return;
  const std::pair key{reading.rope.pairing, reading.rope.dims};
  const auto& rotator =
      rotators_.try_emplace(key, reading.rope, reference::RopeArithmetic{}).first->second;
  reference::RotatedRow turned = rotator.rotate(position + reading.position_shift, row.query);
  reference::add_rounding(case_.shape.query_dtype, turned);
  row.query = std::move(turned.value);
  row.query_error = std::move(turned.error);
}

std::vector<double> Scene::row_values(const Reading& reading, size_t slot, bool value) const {
  const SlotSource& from = source_of(reading, slot, value);
  const Sequence& owner = sequence(from.request_row);
  const size_t page = from.slot / page_slots();
  const uint32_t dim = value ? case_.shape.head_dim_v : case_.shape.head_dim_k;
  std::vector<double> out(dim, std::numeric_limits<double>::quiet_NaN());
  if (page >= owner.pages.size()) return out;
  const bool in_key = value && reading.latent_value_at;
  const auto bytes =
      pool_.row({reading.layer, value && !in_key, owner.pages[page]}, from.slot % page_slots(),
                value ? reading.value_head : reading.key_head);
  const size_t first = in_key ? *reading.latent_value_at : 0;
  decode_row(reading.stored_type, bytes.data() + first * dtype_bytes(reading.stored_type), dim,
             out.data());
  return out;
}

void Scene::fill_query(const Reading& reading, reference::RowInputs& row) const {
  const Shape& s = case_.shape;
  const PlannedRow& asker = step_.rows[reading.query.row];
  const int64_t slot = query_slot(asker, reading.query.query);
  const Slot stands_at = slot_or_tokenless(case_, sequence(reading.query.row), slot);
  std::vector<std::byte> bytes(row_bytes(s, TensorRole::kQuery));
  fill_row(case_,
           {.role = TensorRole::kQuery,
            .request = asker.request,
            .query_slot = slot,
            .layer = reading.query.layer,
            .head = reading.query.head,
            .kv_length = asker.kv_length},
           stands_at, bytes);
  row.query.resize(s.head_dim_k);
  decode_row(s.query_dtype, bytes.data(), s.head_dim_k, row.query.data());
  turn_query(reading, stands_at.position, row);
  const auto drop = [&](std::vector<double>& dims) {
    if (dims.empty()) return;
    std::fill(dims.end() - std::min<ptrdiff_t>(reading.key_dims_dropped, s.head_dim_k), dims.end(),
              0.0);
  };
  drop(row.query);
  drop(row.query_error);
}

void Scene::add_key(const Reading& reading, size_t slot, reference::RowInputs& row) const {
  const bool same_dims = case_.shape.head_dim_k == case_.shape.head_dim_v;
  const auto k = row_values(reading, slot, reading.values_as_keys && same_dims);
  auto v = row_values(reading, slot, !(reading.keys_as_values && same_dims));
  std::fill(v.end() - std::min<ptrdiff_t>(reading.value_dims_dropped, case_.shape.head_dim_v),
            v.end(), 0.0);
  row.slots.push_back(slot);
  row.key_scales.push_back(scale_of(reading, slot, reading.values_as_keys && same_dims));
  row.value_scales.push_back(scale_of(reading, slot, !(reading.keys_as_values && same_dims)));
  row.keys.insert(row.keys.end(), k.begin(), k.end());
  row.values.insert(row.values.end(), v.begin(), v.end());
  const double distance =
      std::fabs(static_cast<double>(slot) - static_cast<double>(reading.alibi_anchor));
  row.bias.push_back((reading.bias.empty() ? 0 : reading.bias[slot]) -
                     reading.alibi_slope * distance);
}

namespace {

void add_zero_key(const ZeroKey& key, reference::RowInputs& row) {
  row.slots.push_back(key.slot);
  row.key_scales.push_back(1);
  row.value_scales.push_back(1);
  row.keys.insert(row.keys.end(), row.shape.dim_k, 0);
  row.values.insert(row.values.end(), row.shape.dim_v, 0);
  row.bias.push_back(key.logit);
}

}  // namespace

Scene::Inputs Scene::inputs(const Reading& reading) const {
  const Shape& s = case_.shape;
  Inputs in;
  reference::RowInputs& row = in.row;
  row.shape = {.dim_k = s.head_dim_k,
               .dim_v = s.head_dim_v,
               .query_dtype = s.query_dtype,
               .kv_dtype = s.kv_dtype,
               .output_dtype = s.output_dtype,
               .scale = static_cast<float>(reading.scale),
               .softcap = static_cast<float>(reading.softcap)};
  fill_query(reading, row);
  auto zero = reading.zero_keys.begin();  // ascending, as the slots have to be
  for (size_t i = 0; i < reading.copies.size(); ++i) {
    for (; zero != reading.zero_keys.end() && zero->slot <= i; ++zero) add_zero_key(*zero, row);
    for (uint32_t copy = 0; copy < reading.copies[i]; ++copy) add_key(reading, i, row);
  }
  for (; zero != reading.zero_keys.end(); ++zero) add_zero_key(*zero, row);
  row.sink = reading.sink;
  row.scaled_kv = s.kv_scale != KvScale::kNone;
  row.span = row.slots.empty() ? 0 : row.slots.back() - row.slots.front() + 1;
  const auto finite = [](double x) { return std::isfinite(x); };
  in.finite = std::all_of(row.keys.begin(), row.keys.end(), finite) &&
              std::all_of(row.values.begin(), row.values.end(), finite) &&
              std::all_of(row.key_scales.begin(), row.key_scales.end(), finite) &&
              std::all_of(row.value_scales.begin(), row.value_scales.end(), finite);
  return in;
}

namespace {

std::vector<double> dots_of(const reference::RowInputs& row) {
  std::vector<double> dots(row.slots.size(), 0);
  for (size_t i = 0; i < dots.size(); ++i) {
    for (uint32_t d = 0; d < row.shape.dim_k; ++d) {
      dots[i] += row.query[d] * row.keys[i * row.shape.dim_k + d];
    }
    dots[i] *= row.key_scales[i];
  }
  return dots;
}

}  // namespace

std::vector<double> Scene::dots(const Reading& reading) const {
  return dots_of(inputs(reading).row);
}

std::vector<double> Scene::scores(const Reading& reading) const {
  const reference::RowInputs row = inputs(reading).row;
  std::vector<double> scores = dots_of(row);
  for (size_t i = 0; i < scores.size(); ++i) {
    double score = scores[i] * reading.scale;
    if (reading.softcap > 0) score = reading.softcap * reference::tanh_of(score / reading.softcap);
    scores[i] = score + row.bias[i];
  }
  return scores;
}

bool Scene::is_finite(const Reading& reading) const { return inputs(reading).finite; }

}  // namespace kv
