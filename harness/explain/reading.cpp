#include "harness/explain/reading.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/case/data.h"
#include "harness/case/head_inputs.h"
#include "harness/case/kv_scales.h"
#include "harness/core/check.h"
#include "harness/judge/contract_stage.h"
#include "harness/judge/value_stage.h"
#include "harness/plugin/kverify_plugin.h"
#include "reference/decide.h"
#include "reference/elementary.h"

namespace kv {
namespace {

constexpr double kLog2e = 0x1.71547652b82fep+0;

Timeline created(const Case& c) {
  auto timeline = Timeline::create(c);
  KV_CHECK(timeline.ok(), "a scene of a case that is not lawful");
  return std::move(timeline).value();
}

}  // namespace

struct Scene::Inputs {
  reference::RowInputs row;
  bool finite = true;
};

Scene::Scene(const Case& c, const Observation& observation, uint32_t op_index)
    : case_(c),
      seen_(observation.ops.at(op_index)),
      facts_(observation.plugin),
      timeline_(created(c)),
      pool_(c),
      profile_(profile_of(c, seen_.profile)) {
  for (uint32_t i = 0; i <= op_index; ++i) {
    step_ = timeline_.apply(i);
    for (const PageImage& image : observation.ops[i].pages) {
      if (pool_.defect(image).empty()) pool_.replace(image);
    }
  }
  for (uint32_t r = 0; r < step_.rows.size(); ++r) {
    for (uint32_t q = 0; q < step_.rows[r].queries; ++q) {
      const bool computed = facts_.pad_rows == KV_PAD_ROWS_COMPUTED;
      if (!computed && is_pad_row(timeline_, {&step_.rows[r], q, 0})) continue;
      for (uint32_t layer = 0; layer < c.shape.layers; ++layer) {
        for (uint32_t head = 0; head < c.shape.query_heads; ++head) {
          rows_.push_back({r, q, layer, head});
        }
      }
    }
  }
}

const Sequence& Scene::sequence(uint32_t row) const {
  return timeline_.sequence(step_.rows[row].request);
}

int64_t Scene::limit(const RowAt& at) const {
  const PlannedRow& row = step_.rows[at.row];
  if (case_.mask.causal == Causal::kTopLeft) return at.query;
  if (case_.mask.causal == Causal::kBottomRight) return query_slot(row, at.query);
  return int64_t{row.kv_length} - 1;
}

Reading Scene::honest(const RowAt& at) const {
  const PlannedRow& row = step_.rows[at.row];
  const uint32_t group = case_.shape.query_heads / case_.shape.kv_heads;
  Reading r;
  const std::vector<uint8_t> visible =
      visible_slots(case_, sequence(at.row), row, {at.query, at.head});
  r.copies.assign(visible.begin(), visible.end());
  r.copies.resize(sequence(at.row).pages.size() * page_slots(), 0);
  for (uint64_t s = 0; s < r.copies.size(); ++s) r.sources.push_back({at.row, s});
  r.query = at;
  r.key_head = r.value_head = at.head / group;
  r.layer = at.layer;
  r.scale = case_.shape.scale;
  r.softcap = case_.shape.softcap;
  const HeadPlace head{at.layer, at.head};
  if (case_.shape.alibi) r.alibi_slope = alibi_slope(case_, head);
  r.alibi_anchor =
      case_.mask.causal == Causal::kTopLeft ? int64_t{at.query} : query_slot(row, at.query);
  if (case_.shape.sinks) r.sink = sink_logit(case_, head);
  r.rope = case_.shape.rope;
  r.stored_type = case_.shape.kv_dtype;
  return r;
}

double Scene::scale_of(const Reading& reading, size_t slot, bool value) const {
  if (case_.shape.kv_scale == KvScale::kNone) return 1;
  const SlotSource& from = reading.sources[slot];
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
  const SlotSource& from = reading.sources[slot];
  const Sequence& owner = sequence(from.request_row);
  const size_t page = from.slot / page_slots();
  const uint32_t dim = value ? case_.shape.head_dim_v : case_.shape.head_dim_k;
  std::vector<double> out(dim, std::numeric_limits<double>::quiet_NaN());
  if (page >= owner.pages.size()) return out;
  const auto bytes = pool_.row({reading.layer, value, owner.pages[page]}, from.slot % page_slots(),
                               value ? reading.value_head : reading.key_head);
  decode_row(reading.stored_type, bytes.data(), dim, out.data());
  return out;
}

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
  const PlannedRow& asker = step_.rows[reading.query.row];
  const int64_t slot = query_slot(asker, reading.query.query);
  std::vector<std::byte> bytes(row_bytes(s, TensorRole::kQuery));
  fill_row(case_,
           {.role = TensorRole::kQuery,
            .request = asker.request,
            .query_slot = slot,
            .layer = reading.query.layer,
            .head = reading.query.head,
            .kv_length = asker.kv_length},
           slot_or_tokenless(case_, sequence(reading.query.row), slot), bytes);
  row.query.resize(s.head_dim_k);
  decode_row(s.query_dtype, bytes.data(), s.head_dim_k, row.query.data());
  turn_query(reading, slot_or_tokenless(case_, sequence(reading.query.row), slot).position, row);
  const bool same_dims = s.head_dim_k == s.head_dim_v;
  for (size_t i = 0; i < reading.copies.size(); ++i) {
    for (uint32_t copy = 0; copy < reading.copies[i]; ++copy) {
      const auto k = row_values(reading, i, reading.values_as_keys && same_dims);
      const auto v = row_values(reading, i, !(reading.keys_as_values && same_dims));
      row.slots.push_back(i);
      row.key_scales.push_back(scale_of(reading, i, reading.values_as_keys && same_dims));
      row.value_scales.push_back(scale_of(reading, i, !(reading.keys_as_values && same_dims)));
      row.keys.insert(row.keys.end(), k.begin(), k.end());
      row.values.insert(row.values.end(), v.begin(), v.end());
      const double distance =
          std::fabs(static_cast<double>(i) - static_cast<double>(reading.alibi_anchor));
      row.bias.push_back((reading.bias.empty() ? 0 : reading.bias[i]) -
                         reading.alibi_slope * distance);
    }
  }
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

std::vector<double> Scene::scores(const Reading& reading) const {
  const reference::RowInputs row = inputs(reading).row;
  std::vector<double> scores;
  for (size_t i = 0; i < row.slots.size(); ++i) {
    double dot = 0;
    for (uint32_t d = 0; d < row.shape.dim_k; ++d) {
      dot += row.query[d] * row.keys[i * row.shape.dim_k + d];
    }
    double score = dot * row.key_scales[i] * reading.scale;
    if (reading.softcap > 0) score = reading.softcap * reference::tanh_of(score / reading.softcap);
    scores.push_back(score + row.bias[i]);
  }
  return scores;
}

uint64_t Scene::token(const RowAt& at) const {
  uint64_t token = at.query;
  for (uint32_t r = 0; r < at.row; ++r) token += step_.rows[r].queries;
  return token;
}

double Scene::output(const RowAt& at, uint32_t column) const {
  const Shape& s = case_.shape;
  const size_t bytes = dtype_bytes(s.output_dtype);
  const size_t element = (token(at) * s.query_heads + at.head) * s.head_dim_v + column;
  uint32_t bits = 0;
  std::memcpy(&bits, &seen_.layers.at(at.layer).output.at(element * bytes), bytes);
  return decode(s.output_dtype, bits);
}

float Scene::lse(const RowAt& at) const {
  return seen_.layers.at(at.layer).lse.at(token(at) * case_.shape.query_heads + at.head);
}

std::optional<Reading> Scene::effective(const RowAt& at, const Reading& reading) const {
  const auto hidden = [](uint32_t n) { return n == 0; };
  if (!std::all_of(reading.copies.begin(), reading.copies.end(), hidden)) return reading;
  const uint32_t length = step_.rows[at.row].kv_length;
  if (!reading.empty_is_mean || length == 0) return std::nullopt;
  Reading mean = reading;
  std::fill_n(mean.copies.begin(), length, 1u);
  mean.scale = mean.alibi_slope = 0;
  mean.sink.reset();
  mean.lse_open = true;
  return mean;
}

bool Scene::is_finite(const Reading& reading) const { return inputs(reading).finite; }

bool Scene::contains(const RowAt& at, const Reading& reading) const {
  const std::optional<Reading> read = effective(at, reading);
  if (!read) {
    for (uint32_t j = 0; j < case_.shape.head_dim_v; ++j) {
      if (output(at, j) != 0) return false;
    }
    return reading.lse_open || (std::isinf(lse(at)) && lse(at) < 0);
  }
  Inputs in = inputs(*read);
  if (!in.finite) return std::isnan(output(at, 0)) || std::isnan(lse(at));
  reference::RowDecider decider(std::move(in.row), profile_, case_.shape.output_dtype);
  const auto violates = [&](const reference::Question& q) {
    return std::isnan(q.got) || decider.ask(q).decision == reference::Decision::kViolates;
  };
  for (uint32_t j = 0; j < case_.shape.head_dim_v; ++j) {
    if (violates({.column = j, .got = output(at, j)})) return false;
  }
  const double base = facts_.lse_base == KV_LSE_BASE_2 ? kLog2e : 1;
  // The reference knows the two bases only: other factors are taken out of what was observed.
  return read->lse_open || !violates({.got = lse(at) / read->lse_factor, .lse_factor = base});
}

void Scene::compute(const RowAt& at, const Reading& reading,
                    std::vector<LayerResult>& layers) const {
  const Shape& s = case_.shape;
  const size_t row = token(at) * s.query_heads + at.head;
  std::vector<double> values(s.head_dim_v, 0);
  double lse = -std::numeric_limits<double>::infinity();
  if (const std::optional<Reading> read = effective(at, reading)) {
    const Inputs in = inputs(*read);
    reference::RowQuestion question;
    for (uint32_t j = 0; j < s.head_dim_v; ++j) question.columns.push_back(j);
    const auto result = reference::precise_row<double>(in.row, profile_, question);
    for (uint32_t j = 0; j < s.head_dim_v; ++j) {
      values[j] = in.finite ? result.columns[j].value : std::nan("");
    }
    lse = in.finite ? result.lse.value * read->lse_factor : std::nan("");
  }
  LayerResult& layer = layers.at(at.layer);
  encode_row(s.output_dtype, values.data(), values.size(),
             &layer.output.at(row * s.head_dim_v * dtype_bytes(s.output_dtype)));
  layer.lse.at(row) = static_cast<float>(lse * (facts_.lse_base == KV_LSE_BASE_2 ? kLog2e : 1));
}

}  // namespace kv
