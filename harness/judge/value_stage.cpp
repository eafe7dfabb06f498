#include "harness/judge/value_stage.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/case/data.h"
#include "harness/case/head_inputs.h"
#include "harness/core/philox.h"
#include "harness/judge/value_failure.h"
#include "harness/plugin/kverify_plugin.h"
#include "reference/case_shape.h"
#include "reference/decide.h"

namespace kv {
namespace {

using reference::HeadBlock;
using reference::QueryRow;
using reference::RowEstimate;

constexpr double kLog2e = 0x1.71547652b82fep+0;
constexpr uint64_t kSampleUse = 0x73616d706c65;  // "sample": this use of the data seed

// The query rows of one request that attend to one K/V head of one layer.
struct HeadWork {
  const PlannedRow* row = nullptr;
  uint64_t first_token = 0;
  uint32_t layer = 0, kv_head = 0;
};

class HeadJudge {
 public:
  HeadJudge(const StepView& view, const HeadWork& work, const VisibleSets& visible,
            const reference::Profile& profile, VerdictStats& stats)
      : view_(view), work_(work), visible_(visible), profile_(profile), stats_(stats) {}

  std::optional<Failure> judge(ValueOptions& options, reference::HeadEstimator& estimator) {
    distribution_ = options.distribution;
    gather_queries(options.sample_rows);
    if (elements_.empty()) return std::nullopt;
    gather_keys();
    const auto& estimate = this->estimate(options, estimator);
    for (size_t r = 0; r < elements_.size(); ++r) {
      const Claims claims = this->claims(estimate.rows[r], options);
      if (auto failure = judge_row(r, estimate.rows[r], claims)) return failure;
    }
    return std::nullopt;
  }

 private:
  /// From a case that asked the same, where there was one.
  const reference::HeadEstimate& estimate(const ValueOptions& options,
                                          reference::HeadEstimator& estimator) const {
    const bool rounded = options.profile_work > 0;
    const auto run = [&]() -> const reference::HeadEstimate& {
      return estimator.run(block_, profile_, {.rounded = rounded});
    };
    if (options.estimates == nullptr) return run();
    return options.estimates->of({view_.c.shape, view_.seen.profile, rounded}, block_, run);
  }
  void gather_queries(double sample);
  void rotate_queries();
  void gather_keys();
  enum class Claims : uint8_t { kNone, kUnsettled, kEveryElement };
  Claims claims(const RowEstimate& estimate, ValueOptions& options);
  std::optional<Failure> judge_row(size_t r, const RowEstimate& estimate, Claims claims);
  std::optional<Failure> judge_output(size_t r, const RowEstimate& estimate, uint32_t column,
                                      Claims claims);
  uint32_t first_in_question(const RowEstimate& e, uint32_t first, Claims claims) const;
  bool conforms_rounded(const RowEstimate& e, uint32_t column, double got) const;
  std::optional<Failure> judge_lse(size_t r, const RowEstimate& estimate);
  reference::RowDecider& decider(size_t r);
  reference::Answer ask(size_t r, const reference::Question& question,
                        reference::Basis basis = reference::Basis::kBlackBox);
  void note_ratio(double value, double bound, double got, DType type);
  void note_conforming(bool nearest, const reference::FastElement& e, double got, DType type) {
    if (!nearest) return note_ratio(e.value, e.bound_low, got, type);
    if (distribution_ != nullptr) distribution_->add(0);
  }
  const std::byte* output_row(const ElementPlace& e) const;
  uint32_t output_bits(const ElementPlace& e, uint32_t column) const;
  float lse(const ElementPlace& e) const;
  double lse_factor() const { return view_.facts.lse_base == KV_LSE_BASE_2 ? kLog2e : 1; }

  const StepView& view_;
  const HeadWork work_;
  const VisibleSets& visible_;
  const reference::Profile& profile_;
  VerdictStats& stats_;
  ErrorDistribution* distribution_ = nullptr;
  std::vector<ElementPlace> elements_;  // one for each row of the block
  std::vector<double> got_;             // outputs of the row at hand
  std::vector<std::byte> query_bytes_;
  std::vector<QueryRow> rows_;
  std::vector<reference::RotatedRow> rotated_;
  std::vector<const std::byte*> keys_, values_;
  std::vector<float> key_scales_, value_scales_;
  HeadBlock block_;
  std::optional<reference::RowDecider> decider_;
  size_t decider_row_ = 0;
};

bool sampled(const Case& c, const HeadWork& work, uint64_t token, double fraction) {
  if (fraction >= 1) return true;
  const uint64_t where = uint64_t{work.layer} << 32 | work.kv_head;
  const uint64_t random = Philox{c.data.seed ^ kSampleUse}.word(where, token);
  return static_cast<double>(random >> 11) * 0x1p-53 < fraction;
}

void HeadJudge::gather_queries(double sample) {
  const Shape& shape = view_.c.shape;
  const uint32_t group = shape.query_heads / shape.kv_heads;
  const size_t bytes = row_bytes(shape, TensorRole::kQuery);
  elements_.reserve(size_t{work_.row->queries} * group);
  for (uint32_t q = 0; q < work_.row->queries; ++q) {
    const RowPlace place{work_.row, q, work_.first_token + q};
    const bool taken = sampled(view_.c, work_, place.token, sample);
    for (uint32_t g = 0; g < group; ++g) {
      const uint32_t head = work_.kv_head * group + g;
      if (row_duty(view_, place, visible_.of(place.token, head)) != RowDuty::kValues) continue;
      if (taken) elements_.push_back({place, work_.layer, head});
      stats_.rows_left_out += !taken;
    }
  }
  query_bytes_.resize(elements_.size() * bytes);
  rows_.reserve(elements_.size());
  const Sequence& sequence = view_.timeline.sequence(work_.row->request);
  for (size_t r = 0; r < elements_.size(); ++r) {
    const int64_t slot = elements_[r].place.slot();
    const auto out = std::span(query_bytes_).subspan(r * bytes, bytes);
    fill_row(view_.c,
             {.role = TensorRole::kQuery,
              .request = work_.row->request,
              .query_slot = slot,
              .layer = work_.layer,
              .head = elements_[r].head,
              .kv_length = work_.row->kv_length},
             slot_or_tokenless(view_.c, sequence, slot), out);
    const HeadPlace head{work_.layer, elements_[r].head};
    const bool top_left = view_.c.mask.causal == Causal::kTopLeft;
    QueryRow query{.query = out.data(),
                   .visible = visible_.of(elements_[r].place.token, elements_[r].head)};
    query.anchor = top_left ? int64_t{elements_[r].place.query} : slot;
    if (shape.alibi) query.alibi_slope = alibi_slope(view_.c, head);
    if (shape.sinks) query.sink = sink_logit(view_.c, head);
    rows_.push_back(query);
  }
  if (view_.conversion.rotates()) rotate_queries();
}

void HeadJudge::rotate_queries() {
  const Shape& shape = view_.c.shape;
  const Sequence& sequence = view_.timeline.sequence(work_.row->request);
  std::vector<double> source(shape.head_dim_k);
  rotated_.reserve(rows_.size());
  for (size_t r = 0; r < rows_.size(); ++r) {
    decode_row(shape.query_dtype, rows_[r].query, source.size(), source.data());
    const int64_t position =
        slot_or_tokenless(view_.c, sequence, elements_[r].place.slot()).position;
    rotated_.push_back(view_.conversion.rotated_query(position, source));
    rows_[r].rotated = rotated_[r].value;
    rows_[r].rotated_error = rotated_[r].error;
  }
}

void HeadJudge::gather_keys() {
  const Shape& shape = view_.c.shape;
  const Sequence& sequence = view_.timeline.sequence(work_.row->request);
  const uint32_t page_slots = view_.c.pool.page_slots;
  const size_t key_slot = view_.pool.slot_bytes(false), value_slot = view_.pool.slot_bytes(true);
  keys_.reserve(work_.row->kv_length);
  values_.reserve(work_.row->kv_length);
  for (uint32_t s = 0; s < work_.row->kv_length;) {
    const PageId page = sequence.pages[s / page_slots];
    const std::byte* k = view_.pool.page({work_.layer, false, page}).data() +
                         size_t{work_.kv_head} * view_.pool.row_bytes(false);
    const std::byte* v = view_.pool.page({work_.layer, true, page}).data() +
                         size_t{work_.kv_head} * view_.pool.row_bytes(true);
    for (uint32_t i = 0; i < page_slots && s < work_.row->kv_length; ++i, ++s) {
      keys_.push_back(k + i * key_slot);
      values_.push_back(v + i * value_slot);
    }
  }
  const auto scales = [&](bool value) {
    return view_.conversion.scales(sequence, work_.row->kv_length,
                                   {work_.layer, value, work_.kv_head});
  };
  key_scales_ = scales(false);
  value_scales_ = scales(true);
  block_ = {.shape = reference::head_shape(shape),
            .keys = keys_,
            .values = values_,
            .key_scales = key_scales_,
            .value_scales = value_scales_,
            .rows = rows_};
}

const std::byte* HeadJudge::output_row(const ElementPlace& e) const {
  const Shape& s = view_.c.shape;
  const size_t first = (e.place.token * s.query_heads + e.head) * s.head_dim_v;
  return &view_.seen.layers[work_.layer].output[first * dtype_bytes(s.output_dtype)];
}

uint32_t HeadJudge::output_bits(const ElementPlace& e, uint32_t column) const {
  const size_t bytes = dtype_bytes(view_.c.shape.output_dtype);
  uint32_t bits = 0;
  std::memcpy(&bits, output_row(e) + column * bytes, bytes);
  return bits;
}

float HeadJudge::lse(const ElementPlace& e) const {
  return view_.seen.layers[work_.layer].lse[e.place.token * view_.c.shape.query_heads + e.head];
}

reference::RowDecider& HeadJudge::decider(size_t r) {
  if (!decider_ || decider_row_ != r) {
    decider_.emplace(reference::row_inputs(block_, r), profile_, view_.c.shape.output_dtype);
    decider_row_ = r;
  }
  return *decider_;
}

reference::Answer HeadJudge::ask(size_t r, const reference::Question& question,
                                 reference::Basis basis) {
  reference::Answer answer = decider(r).ask(question, basis);
  stats_.escalated += answer.tier != reference::Tier::kDouble;
  return answer;
}

void HeadJudge::note_ratio(double value, double bound, double got, DType type) {
  const bool larger =
      bound > 0 && !(std::fabs(got - value) <= stats_.error_bound_ratio_max * bound);
  if (!larger && distribution_ == nullptr) return;
  const double ratio = bound > 0 ? reference::error_bound_ratio(value, bound, got, type) : 0;
  if (distribution_ != nullptr) distribution_->add(ratio);
  if (ratio > stats_.error_bound_ratio_max) stats_.error_bound_ratio_max = ratio;
}

std::optional<Failure> HeadJudge::judge_row(size_t r, const RowEstimate& estimate, Claims claims) {
  if (!estimate.finite) {
    ++stats_.rows_vacuous;
    return std::nullopt;
  }
  ++stats_.rows_judged;
  // The fast tier's test is coarse. Where the full one errs by a rounding, MPFR has the last word
  // on every element that would fail.
  if (estimate.vacuous && decider(r).estimate({.got = 0}, reference::Basis::kBlackBox).vacuous) {
    ++stats_.rows_vacuous;
    return std::nullopt;
  }
  const Shape& s = view_.c.shape;
  got_.resize(s.head_dim_v);
  decode_row(s.output_dtype, output_row(elements_[r]), s.head_dim_v, got_.data());
  for (uint32_t j = 0; j < s.head_dim_v; ++j) {
    const uint32_t next = first_in_question(estimate, j, claims);
    stats_.elements_judged += std::min(next + 1, s.head_dim_v) - j;
    j = next;
    if (j == s.head_dim_v) break;
    if (auto failure = judge_output(r, estimate, j, claims)) return failure;
  }
  return judge_lse(r, estimate);
}

// The elements before it are judged: judge_output() would accept them and note nothing.
uint32_t HeadJudge::first_in_question(const RowEstimate& e, uint32_t first, Claims claims) const {
  using Kind = reference::RoundedEstimate::Kind;
  const Shape& s = view_.c.shape;
  const bool every = claims == Claims::kEveryElement;
  const bool unknown = every && (e.dyadic || e.rounded.kind == Kind::kNotAsked);
  if (distribution_ != nullptr || unknown) return first;
  const uint32_t plain =
      reference::first_in_question({e.output, e.bound_low, e.own_error, got_.data(), s.head_dim_v},
                                   first, s.output_dtype, stats_.error_bound_ratio_max);
  if (!every || e.rounded.kind == Kind::kNone) return plain;
  const reference::RoundedEstimate& rounded = e.rounded;
  return reference::first_in_question(
      {rounded.output, rounded.bound_low, rounded.own_error, got_.data(), plain}, first,
      s.output_dtype, std::numeric_limits<double>::infinity());
}

// Whether an element that the fast tier accepts surely conforms under B2, too.
bool HeadJudge::conforms_rounded(const RowEstimate& e, uint32_t column, double got) const {
  using Kind = reference::RoundedEstimate::Kind;
  const reference::RoundedEstimate& rounded = e.rounded;
  if (e.dyadic || rounded.kind == Kind::kNotAsked) return false;
  if (rounded.kind == Kind::kNone) return true;
  const reference::FastElement fast{rounded.output[column], rounded.bound_low[column],
                                    rounded.own_error[column], got};
  return reference::surely_conforms(fast, view_.c.shape.output_dtype).conforms;
}

// The weakest assumptions first: a failure names the first that rejects.
std::optional<Failure> HeadJudge::judge_output(size_t r, const RowEstimate& e, uint32_t column,
                                               Claims claims) {
  const DType type = view_.c.shape.output_dtype;
  const double got = got_[column];
  const reference::FastElement fast{e.output[column], e.bound_low[column], e.own_error[column],
                                    got};
  const reference::FastAnswer sure = reference::surely_conforms(fast, type);
  if (sure.conforms) note_conforming(sure.nearest, fast, got, type);
  if (sure.conforms && (claims != Claims::kEveryElement || conforms_rounded(e, column, got)))
    return std::nullopt;
  const ValueQuestion question{view_,  elements_[r], profile_.name,
                               column, got,          output_bits(elements_[r], column)};
  if (std::isnan(got)) return nan_failure(question);
  if (!sure.conforms) {
    const reference::Answer answer = ask(r, {.column = column, .got = got});
    if (answer.decision == reference::Decision::kViolates) return value_failure(question, answer);
    note_ratio(answer.want, answer.bound, got, type);
  }
  if (claims == Claims::kNone) return std::nullopt;
  const reference::Answer answer =
      ask(r, {.column = column, .got = got}, reference::Basis::kProbability);
  if (answer.decision != reference::Decision::kViolates) return std::nullopt;
  return value_failure(question, answer);
}

std::optional<Failure> HeadJudge::judge_lse(size_t r, const RowEstimate& e) {
  const double got = lse(elements_[r]), factor = lse_factor();
  ++stats_.elements_judged;
  const reference::FastElement fast{e.lse * factor, e.lse_bound_low * factor,
                                    e.lse_own_error * factor * 2, got};
  const reference::FastAnswer sure = reference::surely_conforms(fast, DType::kF32);
  if (sure.conforms) {
    note_conforming(sure.nearest, fast, got, DType::kF32);
    return std::nullopt;
  }
  const uint32_t bits = std::bit_cast<uint32_t>(lse(elements_[r]));
  const ValueQuestion question{view_, elements_[r], profile_.name, -1, got, bits};
  if (std::isnan(got)) return nan_failure(question);
  const reference::Answer answer = ask(r, {.got = got, .lse_factor = factor});
  if (answer.decision != reference::Decision::kViolates) {
    note_ratio(answer.want, answer.bound, got, DType::kF32);
    return std::nullopt;
  }
  const double other = factor == 1 ? kLog2e : 1;
  const bool swapped =
      ask(r, {.got = got, .lse_factor = other}).decision == reference::Decision::kConforms;
  return lse_failure(question, answer, swapped);
}

// Whether the row's values are also asked under B1 and B2, while there is work left for them. Where
// only B1 may apply, an element that the fast tier accepts needs no more: its bound is below B1's.
HeadJudge::Claims HeadJudge::claims(const RowEstimate& e, ValueOptions& options) {
  if (!e.finite || e.vacuous) return Claims::kNone;
  const bool centred = e.dyadic || reference::rounding_is_known(profile_);
  if (!centred && !reference::order_is_known(profile_)) return Claims::kNone;
  const Shape& s = view_.c.shape;
  const uint64_t work = centred ? e.keys * (s.head_dim_k + s.head_dim_v) : 0;
  if (work > options.profile_work) return Claims::kNone;
  options.profile_work -= work;
  ++stats_.rows_profile_judged;
  return centred ? Claims::kEveryElement : Claims::kUnsettled;
}

}  // namespace

reference::Profile profile_of(const Case& c, const DeclaredProfile& declared) {
  using reference::Declaration;
  Declaration d;
  d.tile_slots = declared.tile_slots;
  d.order = declared.order == KV_ORDER_ASCENDING    ? reference::TileOrder::kAscending
            : declared.order == KV_ORDER_DESCENDING ? reference::TileOrder::kDescending
                                                    : reference::TileOrder::kAny;
  d.accumulate = declared.accumulate == KV_ACCUMULATE_FMA   ? Declaration::Accumulate::kFma
                 : declared.accumulate == KV_ACCUMULATE_MMA ? Declaration::Accumulate::kMma
                                                            : Declaration::Accumulate::kUndeclared;
  d.row_sum_of_rounded = declared.row_sum_of_rounded != 0;
  d.maximum_is_exact = declared.maximum_is_exact != 0;
  d.splits = declared.splits;
  const std::optional<DType> type =
      dtype_of_dlpack(declared.probability_code, declared.probability_bits);
  d.probability_declared = type.has_value();
  if (type) d.probability_dtype = *type;
  return reference::resolve_profile({.shape = c.shape, .declared = d});
}

std::optional<Failure> ValueStage::judge(const StepView& view, const VisibleSets& visible,
                                         VerdictStats& stats) {
  const reference::Profile profile = profile_of(view.c, view.seen.profile);
  uint64_t first_token = 0;
  for (const PlannedRow& row : view.step.rows) {
    for (uint32_t layer = 0; layer < view.c.shape.layers && row.queries > 0; ++layer) {
      for (uint32_t head = 0; head < view.c.shape.kv_heads; ++head) {
        HeadJudge judge(view, {&row, first_token, layer, head}, visible, profile, stats);
        if (auto failure = judge.judge(options_, estimator_)) return failure;
      }
    }
    first_token += row.queries;
  }
  return std::nullopt;
}

}  // namespace kv
