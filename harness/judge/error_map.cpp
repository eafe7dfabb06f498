#include "harness/judge/error_map.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/case/data.h"
#include "harness/case/head_inputs.h"
#include "harness/judge/contract_stage.h"
#include "harness/judge/value_stage.h"
#include "reference/case_shape.h"
#include "reference/decide.h"

namespace kv {
namespace {

using reference::RowInputs;

/// `count` of [0, size), `at` among them, as near to the middle as it can be.
struct Part {
  size_t begin = 0, end = 0;
};
Part around(size_t at, size_t size, size_t count) {
  count = std::min(count, size);
  const size_t begin = std::min(at > count / 2 ? at - count / 2 : 0, size - count);
  return {begin, begin + count};
}

class Mapper {
 public:
  Mapper(const StepView& view, const Divergence& d)
      : view_(view),
        d_(d),
        visible_(visible_sets(view)),
        profile_(profile_of(view.c, view.seen.profile)) {}

  ErrorMap run() {
    ErrorMap map;
    const Shape& s = view_.c.shape;
    uint64_t first_token = 0;
    for (const PlannedRow& row : view_.step.rows) {
      const int64_t query = d_.query_slot - query_slot(row, 0);
      if (row.request.value == d_.request && query >= 0 && query < row.queries) {
        const auto at = static_cast<uint32_t>(query), head = static_cast<uint32_t>(d_.head);
        columns_ = around(static_cast<size_t>(std::max(d_.dimension, int64_t{0})), s.head_dim_v,
                          kErrorColumnsMax);
        map.first_dimension = static_cast<uint32_t>(columns_.begin);
        const size_t rows = rows_max(row);
        const Part heads = around(head, s.query_heads, rows);
        for (size_t h = heads.begin; h < heads.end; ++h)
          map.heads.push_back(measure({&row, at, first_token + at}, static_cast<uint32_t>(h)));
        const Part queries = around(at, row.queries, rows);
        for (size_t q = queries.begin; q < queries.end; ++q)
          map.queries.push_back(measure({&row, static_cast<uint32_t>(q), first_token + q}, head));
      }
      first_token += row.queries;
    }
    return map;
  }

 private:
  size_t rows_max(const PlannedRow& row) const {
    const Shape& s = view_.c.shape;
    const uint64_t work = uint64_t{row.kv_length} * (s.head_dim_k + columns_.end) + 1;
    return static_cast<size_t>(std::clamp<uint64_t>(kErrorWorkMax / work, 1, kErrorRowsMax));
  }

  ErrorRow measure(const RowPlace& place, uint32_t head) const {
    const auto layer = static_cast<uint32_t>(d_.layer);
    ErrorRow out{.head = head, .query_slot = place.slot()};
    out.here = head == d_.head && out.query_slot == d_.query_slot;
    if (row_duty(view_, place, visible_.of(place.token, head)) != RowDuty::kValues) return out;
    RowInputs in = inputs(place, layer, head);
    const auto finite = [](double x) { return std::isfinite(x); };
    if (in.count() == 0 || !std::all_of(in.keys.begin(), in.keys.end(), finite) ||
        !std::all_of(in.values.begin(), in.values.end(), finite))
      return out;
    const Shape& s = view_.c.shape;
    const size_t bytes = dtype_bytes(s.output_dtype);
    std::vector<double> got(s.head_dim_v);
    decode_row(s.output_dtype,
               &view_.seen.layers[layer]
                    .output[(place.token * s.query_heads + head) * s.head_dim_v * bytes],
               s.head_dim_v, got.data());
    reference::RowDecider decider(std::move(in), profile_, s.output_dtype);
    for (size_t j = columns_.begin; j < columns_.end; ++j) {
      const reference::Answer a = decider.estimate(
          {.column = static_cast<int64_t>(j), .got = got[j]}, reference::Basis::kBlackBox);
      out.ratios.push_back(std::isnan(got[j]) ? std::numeric_limits<double>::infinity()
                                              : reference::error_bound_ratio(
                                                    a.want, a.bound, got[j], s.output_dtype));
    }
    return out;
  }

  RowInputs inputs(const RowPlace& place, uint32_t layer, uint32_t head) const {
    const Case& c = view_.c;
    const Shape& s = c.shape;
    const Sequence& sequence = view_.timeline.sequence(place.row->request);
    std::vector<std::byte> query(row_bytes(s, TensorRole::kQuery));
    fill_row(c,
             {.role = TensorRole::kQuery,
              .request = place.row->request,
              .query_slot = place.slot(),
              .layer = layer,
              .head = head,
              .kv_length = place.row->kv_length},
             slot_or_tokenless(c, sequence, place.slot()), query);
    std::vector<const std::byte*> keys, values;
    const uint32_t kv_head = head / (s.query_heads / s.kv_heads);
    for (uint32_t i = 0; i < place.row->kv_length; ++i) {
      const PageId page = sequence.pages[i / c.pool.page_slots];
      const uint32_t slot = i % c.pool.page_slots;
      keys.push_back(view_.pool.row({layer, false, page}, slot, kv_head).data());
      values.push_back(view_.pool.row({layer, true, page}, slot, kv_head).data());
    }
    reference::QueryRow row{.query = query.data(), .visible = visible_.of(place.token, head)};
    row.anchor = c.mask.causal == Causal::kTopLeft ? int64_t{place.query} : place.slot();
    if (s.alibi) row.alibi_slope = alibi_slope(c, {layer, head});
    if (s.sinks) row.sink = sink_logit(c, {layer, head});
    reference::RotatedRow rotated;
    if (view_.conversion.rotates()) {
      std::vector<double> source(s.head_dim_k);
      decode_row(s.query_dtype, query.data(), source.size(), source.data());
      const int64_t position = slot_or_tokenless(c, sequence, place.slot()).position;
      rotated = view_.conversion.rotated_query(position, source);
      row.rotated = rotated.value;
      row.rotated_error = rotated.error;
    }
    const auto scales = [&](bool value) {
      return view_.conversion.scales(sequence, place.row->kv_length, {layer, value, kv_head});
    };
    const std::vector<float> key_scales = scales(false), value_scales = scales(true);
    return reference::row_inputs({.shape = reference::head_shape(s),
                                  .keys = keys,
                                  .values = values,
                                  .key_scales = key_scales,
                                  .value_scales = value_scales,
                                  .rows = std::span(&row, 1)},
                                 0);
  }

  const StepView& view_;
  const Divergence& d_;
  const VisibleSets visible_;
  const reference::Profile profile_;
  Part columns_;
};

}  // namespace

ErrorMap error_map(const Case& c, const Observation& observation, const Divergence& d) {
  const Shape& s = c.shape;
  const bool inside = d.layer >= 0 && d.layer < s.layers && d.head >= 0 && d.head < s.query_heads &&
                      d.dimension < s.head_dim_v && d.op_index < c.ops.size() &&
                      d.op_index < observation.ops.size();
  // Of a cascade nothing is drawn: its elements are not those of the step.
  if (!inside || d.tensor.starts_with("part ") || d.tensor.starts_with("merged ")) return {};
  auto timeline = Timeline::create(c);
  if (!timeline.ok()) return {};
  PoolImage pool(c);
  const Conversion conversion(c);
  PlannedStep step;
  for (uint32_t i = 0; i <= d.op_index; ++i) {
    step = timeline->apply(i);
    const StepView view{c,    observation.plugin, *timeline, step, observation.ops[i],
                        pool, conversion};
    if (!malformed(view).empty()) return {};
    for (const PageImage& image : observation.ops[i].pages) pool.replace(image);
  }
  const StepView view{c,    observation.plugin, *timeline, step, observation.ops[d.op_index],
                      pool, conversion};
  if (static_cast<size_t>(d.layer) >= view.seen.layers.size()) return {};
  return Mapper(view, d).run();
}

}  // namespace kv
