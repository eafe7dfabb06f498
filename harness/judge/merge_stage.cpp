#include "harness/judge/merge_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/case/cascade.h"
#include "harness/case/mask_bits.h"
#include "harness/plugin/kverify_plugin.h"
#include "reference/decide.h"
#include "reference/merge.h"

namespace kv {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1, kLog2e = 0x1.71547652b82fep+0;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

VisibleSets part_of(const StepView& view, const VisibleSets& visible, SlotRange range) {
  const uint32_t heads = mask_heads(view.c);
  VisibleSets part(heads);
  for_each_query(view.step, [&](const RowPlace& place) {
    for (uint32_t head = 0; head < heads; ++head) {
      std::vector<uint8_t> slots = visible.of(place.token, head);
      for (uint32_t s = 0; s < slots.size(); ++s) {
        slots[s] = slots[s] && s >= range.begin && s < range.end;
      }
      part.add(std::move(slots));
    }
    return false;
  });
  return part;
}

bool sees_something(const std::vector<uint8_t>& slots) {
  return std::find(slots.begin(), slots.end(), 1) != slots.end();
}

/// One merge of all parts of one (query row, head) of one layer.
class RowMerge {
 public:
  RowMerge(const StepView& view, const std::vector<VisibleSets>& parts, VerdictStats& stats)
      : view_(view),
        parts_(parts),
        stats_(stats),
        profile_(profile_of(view.c, view.seen.profile)) {}

  std::optional<Failure> judge(const CascadeResult& cascade, const RowPlace& place, uint32_t head);

 private:
  void gather(const CascadeResult& cascade, uint64_t row, const RowPlace& place, uint32_t head);
  std::optional<Failure> judge_value(const reference::MergeEstimate& m, int64_t column, double got);
  Failure failure(std::string failure_class, int64_t column, double got,
                  const reference::MergeValue& want, const std::string& note) const;
  bool are_numbers() const;
  bool is_base_2() const { return view_.facts.lse_base == KV_LSE_BASE_2; }
  DType type_of(int64_t column) const {
    return column < 0 ? DType::kF32 : view_.c.shape.output_dtype;
  }

  const StepView& view_;
  const std::vector<VisibleSets>& parts_;
  VerdictStats& stats_;
  const reference::Profile profile_;
  std::vector<float> outputs_;
  std::vector<double> lse_, values_;
  const RowPlace* place_ = nullptr;
  uint32_t layer_ = 0, head_ = 0;
};

void RowMerge::gather(const CascadeResult& cascade, uint64_t row, const RowPlace& place,
                      uint32_t head) {
  const Shape& s = view_.c.shape;
  const size_t bytes = size_t{s.head_dim_v} * dtype_bytes(s.output_dtype);
  outputs_.clear();
  lse_.clear();
  values_.resize(s.head_dim_v);
  for (size_t i = 0; i < cascade.parts.size(); ++i) {
    const bool empty = !sees_something(parts_[i].of(place.token, head));
    const double lse = cascade.parts[i].lse[row];
    lse_.push_back(empty ? kMinusInfinity : is_base_2() ? lse * kLn2 : lse);
    decode_row(s.output_dtype, &cascade.parts[i].output[row * bytes], s.head_dim_v, values_.data());
    for (const double v : values_) outputs_.push_back(empty ? 0 : static_cast<float>(v));
  }
}

// What a part says of a row of which anything may be said (a V that is no number, an overflow)
// says nothing of the merge. The -inf of an empty state is a number here.
bool RowMerge::are_numbers() const {
  const auto is_number = [](double x) { return std::isfinite(x) || x == kMinusInfinity; };
  return std::all_of(outputs_.begin(), outputs_.end(), [](float x) { return std::isfinite(x); }) &&
         std::all_of(lse_.begin(), lse_.end(), is_number);
}

Failure RowMerge::failure(std::string failure_class, int64_t column, double got,
                          const reference::MergeValue& want, const std::string& note) const {
  const DType type = type_of(column);
  Divergence d = divergence_at(view_, *place_->row, layer_);
  d.tensor = column < 0 ? "merged lse" : "merged output";
  d.head = head_;
  d.query_slot = place_->slot();
  d.dimension = column;
  d.want = want.value;
  d.got = got;
  d.want_bits = hex_bits(type, encode(type, want.value));
  d.got_bits = hex_bits(type, encode(type, got));
  d.admissible_low = want.low;
  d.admissible_high = want.high;
  d.bound = want.bound;
  d.profile = profile_.name;
  std::string states;
  for (const double lse : lse_) states += fmt::format("{}{}", states.empty() ? "" : ", ", lse);
  std::string message = fmt::format(
      "The {} of request {} at query slot {} (layer {}, head {}{}) is {} ({}), want {} ({}): "
      "outside "
      "the admissible interval [{}, {}] of a merge of {} states with LSE {}.{} Certified with "
      "MPFR.",
      d.tensor, place_->row->request.value, d.query_slot, layer_, head_,
      column < 0 ? "" : fmt::format(", dimension {}", column), got, d.got_bits, want.value,
      d.want_bits, want.low, want.high, lse_.size(), states, note);
  return {Stage::kInterval, std::move(failure_class), std::move(message), d};
}

std::optional<Failure> RowMerge::judge_value(const reference::MergeEstimate& m, int64_t column,
                                             double got) {
  ++stats_.elements_judged;
  const bool is_lse = column < 0;
  const double factor = is_lse && is_base_2() ? kLog2e : 1;
  const reference::MergeInputs in{static_cast<uint32_t>(lse_.size()), view_.c.shape.head_dim_v,
                                  outputs_, lse_};
  const auto value_at = [&](double base) {
    return reference::merge_value(in, m, {.column = column, .lse_factor = base}, type_of(column));
  };
  const double value = is_lse ? m.lse * factor : m.output[column];
  const double bound = is_lse ? m.lse_bound * factor : m.bound[column];
  const double own = is_lse ? m.lse_own_error * factor * 2 : m.own_error[column];
  if (reference::surely_conforms({value, bound, own, got}, type_of(column)).conforms) {
    return std::nullopt;
  }
  const reference::MergeValue want = value_at(factor);
  if (got >= want.low && got <= want.high) return std::nullopt;
  if (std::isnan(got)) {
    return failure(is_lse ? "merge-lse-nan" : "merge-output-nan", column, got, want, "");
  }
  if (!is_lse) return failure("merge-output", column, got, want, "");
  const reference::MergeValue other = value_at(factor == 1 ? kLog2e : 1);
  const bool swapped = got >= other.low && got <= other.high;
  return failure(swapped ? "merge-lse-base" : "merge-lse", column, got, want,
                 swapped ? " It is right in the base that is not declared." : "");
}

std::optional<Failure> RowMerge::judge(const CascadeResult& cascade, const RowPlace& place,
                                       uint32_t head) {
  const Shape& s = view_.c.shape;
  const uint64_t row = place.token * s.query_heads + head;
  place_ = &place;
  layer_ = cascade.layer;
  head_ = head;
  gather(cascade, row, place, head);
  if (!are_numbers()) {
    ++stats_.merges_vacuous;
    return std::nullopt;
  }
  const reference::MergeInputs in{static_cast<uint32_t>(lse_.size()), s.head_dim_v, outputs_, lse_};
  const reference::MergeEstimate m = reference::merge_splits(in, profile_);
  if (m.empty) return std::nullopt;  // judge_rows has asked for 0 and -inf
  const size_t bytes = dtype_bytes(s.output_dtype);
  decode_row(s.output_dtype, &cascade.merged.output[row * s.head_dim_v * bytes], s.head_dim_v,
             values_.data());
  for (uint32_t j = 0; j < s.head_dim_v; ++j) {
    if (auto wrong = judge_value(m, j, values_[j])) return wrong;
  }
  return judge_value(m, -1, cascade.merged.lse[row]);
}

/// The step as if one part, or the merge, were all that had run.
OpObservation only(const OpObservation& seen, std::vector<LayerResult> layers) {
  OpObservation alone{.op_index = seen.op_index, .status = seen.status};
  alone.profile = seen.profile;
  alone.layers = std::move(layers);
  return alone;
}

std::optional<Failure> judge_part(const StepView& view, const VisibleSets& visible, uint32_t part,
                                  ValueStage& values, VerdictStats& stats) {
  std::vector<LayerResult> layers;
  for (const CascadeResult& cascade : view.seen.cascades) layers.push_back(cascade.parts[part]);
  const OpObservation seen = only(view.seen, std::move(layers));
  const StepView alone{view.c, view.facts, view.timeline,  view.step,
                       seen,   view.pool,  view.conversion};
  ContractCounts counts;
  std::optional<Failure> failure = judge_rows(alone, visible, counts);
  if (!failure) failure = values.judge(alone, visible, stats);
  if (failure) {
    failure->message = fmt::format("In part {} of a cascade of parts of {} slots: ", part,
                                   view.c.exec.cascade_slots) +
                       failure->message;
    if (failure->divergence) failure->divergence->tensor.insert(0, "part ");
  }
  return failure;
}

/// Empty rows stay empty, and nothing is left unwritten.
std::optional<Failure> judge_merged_rows(const StepView& view, const VisibleSets& visible) {
  std::vector<LayerResult> layers;
  for (const CascadeResult& cascade : view.seen.cascades) layers.push_back(cascade.merged);
  const OpObservation seen = only(view.seen, std::move(layers));
  // What becomes of a PAD row is said of attention, not of a merge.
  PluginFacts facts = view.facts;
  if (facts.pad_rows != KV_PAD_ROWS_COMPUTED) facts.pad_rows = KV_PAD_ROWS_UNSPECIFIED;
  const StepView alone{view.c, facts, view.timeline, view.step, seen, view.pool, view.conversion};
  ContractCounts counts;
  std::optional<Failure> failure = judge_rows(alone, visible, counts);
  if (!failure) return failure;
  failure->failure_class = "merge-" + failure->failure_class;
  failure->message = "After the merge of a cascade's states: " + failure->message;
  return failure;
}

}  // namespace

std::optional<Failure> judge_cascades(const StepView& view, const VisibleSets& visible,
                                      ValueStage& values, VerdictStats& stats) {
  if (view.seen.cascades.empty()) return std::nullopt;
  std::vector<VisibleSets> parts;
  for (uint32_t i = 0; i < cascade_parts(view.c, view.step); ++i) {
    parts.push_back(part_of(view, visible, cascade_range(view.c, view.step, i)));
    if (auto failure = judge_part(view, parts.back(), i, values, stats)) return failure;
  }
  if (auto failure = judge_merged_rows(view, visible)) return failure;
  RowMerge merge(view, parts, stats);
  std::optional<Failure> failure;
  for (const CascadeResult& cascade : view.seen.cascades) {
    for_each_query(view.step, [&](const RowPlace& place) {
      for (uint32_t head = 0; head < view.c.shape.query_heads && !failure; ++head) {
        const RowDuty duty = row_duty(view, place, visible.of(place.token, head));
        if (duty == RowDuty::kValues) failure = merge.judge(cascade, place, head);
      }
      return failure.has_value();
    });
    if (failure) return failure;
  }
  return std::nullopt;
}

}  // namespace kv
