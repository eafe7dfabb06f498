// Whether an observed row lies in the admissible interval of a reading, and what a reading gives.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/explain/reading.h"
#include "harness/judge/value_stage.h"
#include "harness/plugin/kverify_plugin.h"
#include "reference/decide.h"

namespace kv {
namespace {

constexpr double kLog2e = 0x1.71547652b82fep+0;
constexpr double kFiniteMinimum = -1e4;  // what no LSE of keys comes near

bool fits(EmptyLse expected, double lse) {
  switch (expected) {
    case EmptyLse::kMinusInfinity:
      return std::isinf(lse) && lse < 0;
    case EmptyLse::kZero:
      return lse == 0;
    case EmptyLse::kPlusInfinity:
      return std::isinf(lse) && lse > 0;
    case EmptyLse::kNan:
      return std::isnan(lse);
    case EmptyLse::kFiniteMinimum:
      return std::isfinite(lse) && lse < kFiniteMinimum;
  }
  return false;
}

double value_of(EmptyLse expected) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (expected) {
    case EmptyLse::kMinusInfinity:
      return -kInfinity;
    case EmptyLse::kZero:
      return 0;
    case EmptyLse::kPlusInfinity:
      return kInfinity;
    case EmptyLse::kNan:
      return std::numeric_limits<double>::quiet_NaN();
    case EmptyLse::kFiniteMinimum:
      return -std::numeric_limits<float>::max();
  }
  return 0;
}

}  // namespace

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

/// All of them NaN, or all 0.
bool Scene::outputs_are(const RowAt& at, bool nan) const {
  for (uint32_t j = 0; j < case_.shape.head_dim_v; ++j) {
    const double value = output(at, j);
    if (nan ? !std::isnan(value) : value != 0) return false;
  }
  return true;
}

std::optional<Reading> Scene::effective(const RowAt& at, const Reading& reading) const {
  const auto hidden = [](uint32_t n) { return n == 0; };
  const bool empty = reading.zero_keys.empty() &&
                     std::all_of(reading.copies.begin(), reading.copies.end(), hidden);
  if (!empty) return reading;
  const uint32_t length = step_.rows[at.row].kv_length;
  if (!reading.empty_is_mean || length == 0) return std::nullopt;
  Reading mean = reading;
  std::fill_n(mean.copies.begin(), length, 1u);
  mean.scale = mean.alibi_slope = 0;
  mean.sink.reset();
  mean.lse_open = true;
  return mean;
}

reference::Profile Scene::profile(const Reading& reading) const {
  return reading.arithmetic ? profile_of(case_, *reading.arithmetic) : profile_;
}

bool Scene::contains_empty(const RowAt& at, const Reading& reading) const {
  return outputs_are(at, false) && (reading.lse_open || fits(reading.empty_lse, lse(at)));
}

bool Scene::contains(const RowAt& at, const Reading& reading) const {
  if (reading.fate == RowFate::kAnything) return true;
  if (reading.fate == RowFate::kNan) return outputs_are(at, true);
  if (reading.fate == RowFate::kNothingLeft) {
    return outputs_are(at, false) || outputs_are(at, true);
  }
  const std::optional<Reading> read = effective(at, reading);
  if (!read && !reading.lse_as) return contains_empty(at, reading);
  if (!read) return outputs_are(at, false) && contains_lse(at, *reading.lse_as);
  Inputs in = inputs(*read);
  if (!in.finite) return std::isnan(output(at, 0)) || std::isnan(lse(at));
  const reference::Profile profile = this->profile(*read);
  reference::RowDecider decider(std::move(in.row), profile, case_.shape.output_dtype);
  for (uint32_t j = 0; j < case_.shape.head_dim_v; ++j) {
    const double got = output(at, j);
    if (std::isnan(got)) return false;
    const auto answer = decider.ask({.column = j, .got = got});
    if (answer.decision == reference::Decision::kViolates) return false;
  }
  return read->lse_open || contains_lse(at, read->lse_as ? *read->lse_as : *read);
}

bool Scene::contains_lse(const RowAt& at, const Reading& reading) const {
  if (reading.lse_open) return true;
  const std::optional<Reading> read = effective(reading.query, reading);
  if (!read) return fits(reading.empty_lse, lse(at));
  Inputs in = inputs(*read);
  if (!in.finite) return std::isnan(lse(at));
  const reference::Profile profile = this->profile(*read);
  reference::RowDecider decider(std::move(in.row), profile, case_.shape.output_dtype);
  const double base = facts_.lse_base == KV_LSE_BASE_2 ? kLog2e : 1;
  // The reference knows the two bases only: what else was done is undone on what was observed.
  const double got = lse(at) / read->lse_factor - read->lse_shift * base;
  if (std::isnan(got)) return false;
  return decider.ask({.got = got, .lse_factor = base}).decision != reference::Decision::kViolates;
}

double Scene::lse_of(const RowAt& at, const Reading& reading) const {
  if (reading.lse_as) return lse_of(at, *reading.lse_as);
  if (reading.fate == RowFate::kNan) return std::nan("");
  const std::optional<Reading> read = effective(at, reading);
  if (!read || reading.fate != RowFate::kNumbers) return value_of(reading.empty_lse);
  const Inputs in = inputs(*read);
  if (!in.finite) return std::nan("");
  const auto row = reference::precise_row<double>(in.row, profile(*read), {});
  return (row.lse.value + read->lse_shift) * read->lse_factor;
}

double Scene::lse_error(const RowAt& at, const Reading& reading) const {
  const double base = facts_.lse_base == KV_LSE_BASE_2 ? kLog2e : 1;
  const double error = lse(at) / base - lse_of(at, reading);
  return std::isfinite(error) ? error : std::nan("");
}

std::vector<double> Scene::outputs_of(const RowAt& at, const Reading& reading) const {
  const double lost = reading.fate == RowFate::kNan ? std::nan("") : 0;
  std::vector<double> values(case_.shape.head_dim_v, lost);
  const std::optional<Reading> read = effective(at, reading);
  if (!read || reading.fate != RowFate::kNumbers) return values;
  const Inputs in = inputs(*read);
  reference::RowQuestion question;
  for (uint32_t j = 0; j < values.size(); ++j) question.columns.push_back(j);
  const auto row = reference::precise_row<double>(in.row, profile(*read), question);
  for (uint32_t j = 0; j < values.size(); ++j) {
    values[j] = in.finite ? row.columns[j].value : std::nan("");
  }
  return values;
}

void Scene::compute(const RowAt& at, const Reading& reading,
                    std::vector<LayerResult>& layers) const {
  if (reading.fate == RowFate::kAnything) return;
  const Shape& s = case_.shape;
  const size_t row = token(at) * s.query_heads + at.head;
  const std::vector<double> values = outputs_of(at, reading);
  LayerResult& layer = layers.at(at.layer);
  encode_row(s.output_dtype, values.data(), values.size(),
             &layer.output.at(row * s.head_dim_v * dtype_bytes(s.output_dtype)));
  const double base = facts_.lse_base == KV_LSE_BASE_2 ? kLog2e : 1;
  layer.lse.at(row) = static_cast<float>(lse_of(at, reading) * base);
}

}  // namespace kv
