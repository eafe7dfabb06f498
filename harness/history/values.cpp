#include "harness/history/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/case/head_inputs.h"
#include "harness/core/hash.h"
#include "harness/core/philox.h"
#include "harness/plugin/kverify_plugin.h"
#include "reference/case_shape.h"
#include "reference/decide.h"
#include "reference/visible.h"

namespace kv {
namespace {

constexpr uint64_t kSampleUse = 0x76616c756573;  // "values": this use of the data seed
constexpr double kLog2e = 0x1.71547652b82fep+0;
constexpr size_t kWaitingMax = 32;  // steps whose outputs nobody has asked for

}  // namespace

ValueCounts& ValueCounts::operator+=(const ValueCounts& other) {
  steps += other.steps;
  steps_judged += other.steps_judged;
  rows += other.rows;
  elements += other.elements;
  rows_unread += other.rows_unread;
  repeats += other.repeats;
  shared += other.shared;
  not_offered = not_offered || other.not_offered;
  return *this;
}

Values::Values(const Case& c, double fraction, const Conventions& conventions, Echo* echo)
    : case_(c),
      content_(c),
      groups_(cache_groups(c)),
      fraction_(fraction),
      conventions_(conventions),
      echo_(echo),
      stored_(c.shape),
      is_plain_(!stored_.changes(false)),
      profile_(reference::resolve_profile({.shape = c.shape})) {}

bool Values::wants(const call::Step& step) {
  const bool queries = std::any_of(step.rows.begin(), step.rows.end(),
                                   [](const call::StepRow& row) { return row.queries > 0; });
  if (!queries || (fraction_ <= 0 && echo_ == nullptr)) return false;
  const uint64_t random = Philox{case_.data.seed ^ kSampleUse}.word(0, counts_.steps++);
  judged_next_ = static_cast<double>(random >> 11) * 0x1p-53 < fraction_;
  return !counts_.not_offered && (judged_next_ || echo_ != nullptr);
}

ValueCounts Values::counts() const {
  ValueCounts counts = counts_;
  if (echo_ != nullptr) {
    counts.repeats = echo_->repeats();
    counts.shared = echo_->shared();
  }
  return counts;
}

void Values::note(const Model& model, const call::Step& step, uint64_t number) {
  Step noted{.number = number, .draft = step.draft, .judged = judged_next_};
  for (const call::StepRow& row : step.rows) {
    if (row.cancel_before_layer > 0) {
      noted.rows.push_back({.request = row.request, .queries = row.queries, .is_gone = true});
      continue;
    }
    if (row.queries == 0) continue;
    const ModelRequest& r = *model.find(row.request);
    noted.rows.push_back({.request = row.request,
                          .slots = step.draft ? r.draft : r.slots,
                          .append = row.append,
                          .queries = row.queries,
                          .tree_parents = row.tree_parents,
                          .position_offset = r.position_offset});
  }
  noted_.push_back(std::move(noted));
}

MaybeFinding Values::judge(const Model& model, Engine& engine) {
  const auto& flying = model.in_flight();
  MaybeFinding found;
  if (!flying.empty() && noted_.size() <= kWaitingMax) return found;
  std::erase_if(noted_, [&](const Step& step) {
    const bool flies = std::any_of(flying.begin(), flying.end(),
                                   [&](const FlyingStep& f) { return f.number == step.number; });
    if (flies || found) return false;
    found = judge_step(step, model, engine);
    return true;
  });
  return found;
}

size_t Values::output_bytes(const Row& row) const {
  const Shape& s = case_.shape;
  return size_t{row.queries} * s.query_heads * s.head_dim_v * dtype_bytes(s.output_dtype);
}

int64_t Values::window_left(const Step& step, uint32_t layer) const {
  if (step.draft) return -1;
  size_t group = 0;
  while (layer >= groups_[group].layers) layer -= groups_[group++].layers;
  return groups_[group].window_left;
}

MaybeFinding Values::judge_step(const Step& step, const Model& model, Engine& engine) {
  const StepOutputs seen = engine.take_outputs(step.number);
  const auto& outputs = seen.outputs;
  const uint32_t layers = step.draft ? case_.engine->draft_layers : case_.shape.layers;
  size_t bytes = 0, queries = 0;
  for (const Row& row : step.rows) {
    bytes += output_bytes(row);
    queries += row.queries;
  }
  const size_t lses = queries * case_.shape.query_heads;
  const bool complete = outputs.size() == layers && seen.lses.size() == layers &&
                        std::all_of(outputs.begin(), outputs.end(),
                                    [bytes](const auto& layer) { return layer.size() == bytes; }) &&
                        std::all_of(seen.lses.begin(), seen.lses.end(),
                                    [lses](const auto& layer) { return layer.size() == lses; });
  if (!complete) {
    return HistoryFinding{
        .check = CheckClass::kValues,
        .message = fmt::format("step {}: expected {} bytes of output and {} LSE of each of {} "
                               "layers, got {} layers, or others",
                               step.number, bytes, lses, layers, outputs.size())};
  }
  counts_.steps_judged += step.judged;
  for (uint32_t layer = 0; layer < layers; ++layer) {
    LayerRows at{.layer = {.layer = layer, .draft = step.draft},
                 .window_left = window_left(step, layer),
                 .output = outputs[layer].data(),
                 .lse = seen.lses[layer].data(),
                 .queries = queries};
    for (const Row& row : step.rows) {
      at.row = &row;
      at.is_held = model.in_flight().empty() && is_held(row, model);
      MaybeFinding found;
      if (step.judged && !row.is_gone) found = judge_layer(at, engine);
      if (!found && echo_ != nullptr && !row.is_gone) found = hear(step, at);
      if (found) {
        found->message = fmt::format("step {}, {}", step.number, found->message);
        return found;
      }
      at.output += output_bytes(row);
      at.first_query += row.queries;
    }
  }
  return std::nullopt;
}

MaybeFinding Values::judge_layer(const LayerRows& at, Engine& engine) {
  const Row& row = *at.row;
  if (row.queries == 0) return std::nullopt;
  const size_t length = row.slots.size(), query_bytes = content_.query_bytes();
  if (is_plain_) {
    make_content(at);
  } else {
    read_held(at, engine);
  }
  queries_.resize(row.queries * query_bytes);
  const std::vector<uint8_t> real(length, 1);
  std::vector<std::vector<uint8_t>> visible;
  for (uint32_t q = 0; q < row.queries; ++q) {
    content_.query(row.slots[length - row.queries + q], at.layer,
                   std::span(queries_).subspan(q * query_bytes, query_bytes));
    visible.push_back(reference::visible_keys({.causal = case_.mask.causal,
                                               .window_left = at.window_left,
                                               .window_right = case_.mask.window_right,
                                               .queries = row.queries,
                                               .real = real,
                                               .append_slots = row.append,
                                               .tree_parents = row.tree_parents},
                                              q));
  }
  for (uint32_t head = 0; head < case_.shape.kv_heads; ++head) {
    if (auto found = judge_head(at, head, visible)) return found;
  }
  return std::nullopt;
}

MaybeFinding Values::judge_head(const LayerRows& at, uint32_t kv_head,
                                const std::vector<std::vector<uint8_t>>& visible) {
  const Shape& s = case_.shape;
  const Row& row = *at.row;
  const size_t length = row.slots.size(), group = s.query_heads / s.kv_heads;
  const size_t query_row = content_.query_bytes() / s.query_heads;
  const HeadCache cache = head_cache(kv_head);
  std::vector<Got> got;
  std::vector<reference::QueryRow> rows;
  std::vector<reference::RotatedRow> rotated;
  rotated.reserve(row.queries * group);
  std::vector<std::pair<uint64_t, size_t>> places;  // slot, query head
  for (uint32_t q = 0; q < row.queries; ++q) {
    const size_t slot = length - row.queries + q;
    const bool in_tree = !row.tree_parents.empty() && slot + row.append >= length;
    const bool moved = row.slots[slot].position != row.position_offset + static_cast<int64_t>(slot);
    if (moved && !in_tree) continue;
    if (sees_unread(visible[q])) {
      counts_.rows_unread += group;
      continue;
    }
    for (size_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      rows.push_back({.query = queries_.data() + (q * s.query_heads + head) * query_row,
                      .visible = visible[q],
                      .anchor = static_cast<int64_t>(slot)});
      if (stored_.rotates()) rotate(row.slots[slot].position, rows.back(), rotated.emplace_back());
      const HeadPlace place{at.layer.layer + (at.layer.draft ? s.layers : 0),
                            static_cast<uint32_t>(head)};
      if (s.alibi) rows.back().alibi_slope = alibi_slope(case_, place);
      if (s.sinks) rows.back().sink = sink_logit(case_, place);
      got.push_back({.output = at.output + (q * s.query_heads + head) * s.head_dim_v *
                                               dtype_bytes(s.output_dtype),
                     .lse = lse_of(at, q, head)});
      places.emplace_back(slot, head);
    }
  }
  const reference::HeadBlock block{.shape = reference::head_shape(s),
                                   .keys = cache.keys,
                                   .values = cache.values,
                                   .key_scales = cache.key_scales,
                                   .value_scales = cache.value_scales,
                                   .rows = rows};
  if (rows.empty()) return std::nullopt;
  const auto& estimate = estimator_.run(block, profile_);
  for (size_t r = 0; r < rows.size(); ++r) {
    auto found = judge_output(block, r, estimate.rows[r], got[r]);
    if (!found) continue;
    found->message =
        fmt::format("request {}, query at slot {}, layer {}{}, head {}, {}", row.request.value,
                    places[r].first, at.layer.layer, at.layer.draft ? " of the draft model" : "",
                    places[r].second, found->message);
    found->request = row.request;
    found->slot = places[r].first;
    found->layer = at.layer.layer;
    found->draft = at.layer.draft;
    return found;
  }
  return std::nullopt;
}

// One row of one head. An element that the fast tier does not accept is decided, never guessed.
MaybeFinding Values::judge_output(const reference::HeadBlock& block, size_t row,
                                  const reference::RowEstimate& estimate, const Got& seen) {
  const Shape& s = case_.shape;
  ++counts_.rows;
  if (!estimate.finite) return std::nullopt;
  std::vector<double> got(s.head_dim_v);
  decode_row(s.output_dtype, seen.output, s.head_dim_v, got.data());
  std::optional<reference::RowDecider> decider;
  for (uint32_t j = 0; j < s.head_dim_v; ++j) {
    ++counts_.elements;
    HistoryFinding found{.check = CheckClass::kValues};
    if (std::isnan(got[j])) {
      found.message =
          fmt::format("output {}: NaN (or not written), though all inputs are finite", j);
      return found;
    }
    const reference::FastElement fast{estimate.output[j], estimate.bound_low[j],
                                      estimate.own_error[j], got[j]};
    if (!estimate.vacuous && reference::surely_conforms(fast, s.output_dtype).conforms) continue;
    if (!decider) {
      decider.emplace(reference::row_inputs(block, row), profile_, s.output_dtype);
    }
    const reference::Answer answer = decider->ask({.column = j, .got = got[j]});
    if (answer.decision != reference::Decision::kViolates) continue;
    found.message =
        fmt::format("output {}: expected {:.9g}, within [{:.9g}, {:.9g}], got {:.9g}; {} keys", j,
                    answer.want, answer.low, answer.high, got[j], estimate.keys);
    return found;
  }
  return judge_lse(block, row, estimate, seen.lse);
}

MaybeFinding Values::judge_lse(const reference::HeadBlock& block, size_t row,
                               const reference::RowEstimate& e, float seen) {
  const double factor = conventions_.lse_base == KV_LSE_BASE_2 ? kLog2e : 1, got = seen;
  ++counts_.elements;
  HistoryFinding found{.check = CheckClass::kValues};
  if (std::isnan(got)) {
    found.message = "LSE: NaN (or not written), though all inputs are finite";
    return found;
  }
  const reference::FastElement fast{e.lse * factor, e.lse_bound_low * factor,
                                    e.lse_own_error * factor * 2, got};
  if (!e.vacuous && reference::surely_conforms(fast, DType::kF32).conforms) return std::nullopt;
  reference::RowDecider decider(reference::row_inputs(block, row), profile_,
                                case_.shape.output_dtype);
  const reference::Answer answer = decider.ask({.got = got, .lse_factor = factor});
  if (answer.decision != reference::Decision::kViolates) return std::nullopt;
  found.message = fmt::format("LSE: expected {:.9g}, within [{:.9g}, {:.9g}], got {:.9g}; {} keys",
                              answer.want, answer.low, answer.high, got, e.keys);
  return found;
}

float Values::lse_of(const LayerRows& at, uint64_t query, uint64_t head) const {
  const uint64_t heads = case_.shape.query_heads, all = at.first_query + query;
  const bool head_major = conventions_.lse_layout == KV_LSE_HEAD_MAJOR;
  return at.lse[head_major ? head * at.queries + all : all * heads + head];
}

MaybeFinding Values::hear(const Step& step, const LayerRows& at) {
  const Row& row = *at.row;
  const Shape& s = case_.shape;
  const size_t bytes = size_t{s.query_heads} * s.head_dim_v * dtype_bytes(s.output_dtype);
  for (uint32_t q = 0; q < row.queries; ++q) {
    EchoRow heard{.output = {at.output + q * bytes, bytes}, .lses = {}};
    for (uint32_t head = 0; head < s.query_heads; ++head) {
      heard.lses.push_back(lse_of(at, q, head));
    }
    const EchoPlace place{.request = row.request,
                          .slot = row.slots.size() - row.queries + q,
                          .step = step.number,
                          .layer = at.layer.layer,
                          .draft = at.layer.draft};
    if (auto found = echo_->hear(echo_key(row, q, at.layer), heard, place)) return found;
  }
  return std::nullopt;
}

// All that may decide the bits of a query: what it sees, and where; and how it was asked, unless
// that is promised to make no difference.
uint64_t Values::echo_key(const Row& row, uint32_t query, ContentLayer layer) const {
  const size_t length = row.slots.size(), own = length - row.queries + query;
  const size_t page_slots = case_.pool.page_slots;
  Hasher hasher;
  hasher.add(uint64_t{layer.layer} << 1 | layer.draft);
  if ((conventions_.promises & KV_PROMISE_CHUNK) == 0) {
    hasher.add(uint64_t{row.queries});
    hasher.add(uint64_t{length});
  }
  hasher.add(row.position_offset);
  std::vector<uint8_t> visible(own + 1, 1);
  if (!row.tree_parents.empty()) {
    const std::vector<uint8_t> real(length, 1);
    visible = reference::visible_keys({.causal = case_.mask.causal,
                                       .window_left = -1,
                                       .window_right = -1,
                                       .queries = row.queries,
                                       .real = real,
                                       .append_slots = row.append,
                                       .tree_parents = row.tree_parents},
                                      query);
  }
  for (size_t slot = 0; slot < visible.size(); ++slot) {
    if (visible[slot] == 0) continue;
    hasher.add(uint64_t{slot});
    hasher.add(row.slots[slot].history);
    hasher.add(row.slots[slot].position);
    // A branch that the query does not see may have been the first of its page.
    if (case_.shape.kv_scale == KvScale::kPage) {
      hasher.add(row.slots[slot / page_slots * page_slots].history);
    }
  }
  return hasher.digest();
}

}  // namespace kv
