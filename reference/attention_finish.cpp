#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "harness/core/wide.h"
#include "reference/attention_buffers.h"
#include "reference/elementary.h"
#include "reference/exactness.h"

namespace kv::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUnit64 = 0x1p-53;

/// What finish_elements() multiplies and divides by; all finite, total and smallest positive.
struct RowFactors {
  double total, centre, share, size_share, relative, smallest, tiny;
};
/// The sums of a row's elements, and where their bounds go.
struct RowElements {
  double* __restrict output;
  const double* __restrict absolute;
  double* __restrict bound;
  double* __restrict error;
};

KV_WIDE void finish_elements(const RowFactors& f, const RowElements& e, uint32_t count) {
  for (uint32_t j = 0; j < count; ++j) {
    const double value = e.output[j] / f.total, size = std::fabs(value);
    e.output[j] = value;
    const double spread = std::max(0.0, e.absolute[j] - f.centre * size) / f.total;
    e.bound[j] = (spread * f.share + size * f.size_share) * (1 - 0x1p-30);
    e.error[j] =
        f.relative * (e.absolute[j] / (f.smallest * f.total) * (1 + 0x1p-40) + size) + f.tiny;
  }
}

}  // namespace

void HeadEstimator::Buffers::mark_special(size_t row) {
  const uint8_t* seen = &visible[row * keys];
  for (size_t i = 0; i < slots.size(); ++i) {
    if (seen[i] && special[i]) result.rows[row].finite = false;
  }
}

void HeadEstimator::Buffers::finish(const HeadBlock& block, const Profile& profile) {
  bound.assign(output.size(), 0);
  error.assign(output.size(), 0);
  own_relative.assign(block.rows.size(), 0);
  rounding_min.assign(block.rows.size(), 1);
  for (size_t r = 0; r < block.rows.size(); ++r) {
    RowEstimate& row = result.rows[r];
    row.output = &output[r * value_stride];
    row.bound_low = &bound[r * value_stride];
    row.own_error = &error[r * value_stride];
    mark_special(r);
    if (row.empty()) row.lse = row.score_max = -kInfinity;
    if (!row.empty() && row.finite) finish_row(block, profile, r);
  }
}

double HeadEstimator::Buffers::rotation_norm(const QueryRow& row) {
  double square = 0;
  for (double e : row.rotated_error) square += e * e;
  return std::sqrt(square);
}

// As RowFacts::operands_fit, over all keys that any row sees.
bool HeadEstimator::Buffers::operands_fit(const Coefficients& c) const {
  return std::max(key_max, value_max) <= c.operand_max && scale_max <= c.folded_scale_max;
}

// Whether exactness.h might certify the row: all weights are 1 or negligible. ALiBi does not
// exclude it, nor the next: a key at the query's own place has no bias.
bool HeadEstimator::Buffers::may_be_unit(size_t row) const {
  if (sums[row].score_max != 0) return false;
  for (size_t i = 0; i < slots.size(); ++i) {
    const double w = weight[row * keys + i];
    if (visible[row * keys + i] && w != 1 && w > 2 * kNegligibleWeight) return false;
  }
  return true;
}

// Whether precise/dyadic.h might certify the row: its weights are near powers of two, or vanish.
bool HeadEstimator::Buffers::may_be_dyadic(const HeadBlock& block, const Profile& profile,
                                           size_t row) const {
  const QueryRow& from = block.rows[row];
  const bool plain = key_scale.empty() && value_scale.empty() && block.shape.softcap == 0 &&
                     !from.sink && from.rotated.empty();
  if (!plain || !rounding_is_declared(profile)) return false;
  const double quarter = 0.25 * dtype_unit_roundoff(profile.probability_dtype);
  const double quantum = coefficients_of[row].probability_absolute;
  for (size_t i = 0; i < slots.size(); ++i) {
    const double w = weight[row * keys + i];
    if (!visible[row * keys + i] || w < quantum) continue;
    const double below = power_of_two(exponent_of(w));
    if (w - below > quarter * w && 2 * below - w > quarter * w) return false;
  }
  return true;
}

// Upper bounds over the keys that the row sees.
HeadEstimator::Buffers::ScoreSizes HeadEstimator::Buffers::score_sizes(const HeadBlock& block,
                                                                       const Coefficients& c,
                                                                       size_t r) const {
  double norm = 0, operand = c.key_normal, top = 1;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!visible[r * keys + i]) continue;
    const double scale = key_scale.empty() ? 1 : std::fabs(key_scale[i]);
    norm = std::max(norm, key_norm[i] * scale);
    operand = std::max(operand, key_norm[i]);
    top = std::max(top, scale);
  }
  const double factor = std::fabs(double{block.shape.scale});
  const double query = std::max(query_norm[r], c.query_normal);
  return {.key = norm * factor,
          .largest = norm * factor * query_norm[r],
          .floor = top * factor * std::max(c.query_normal * operand, c.key_normal * query)};
}

// Everything here mirrors precise/row.cpp with each Theta_i replaced by 0 (below) or by its largest
// value (for the vacuous test and the own error), S_i by |q||k_i| (Cauchy-Schwarz).
void HeadEstimator::Buffers::finish_row(const HeadBlock& block, const Profile& profile, size_t r) {
  RowEstimate& row = result.rows[r];
  const QueryRow& from = block.rows[r];
  const Coefficients& c = coefficients_of[r];
  const double sink_weight = from.sink ? exp_nonpositive(*from.sink - sums[r].score_max) : 0;
  const double total = sums[r].weights + sink_weight;
  row.score_max = sums[r].score_max;
  row.lse = row.score_max + log_at_least_one(total);

  double farthest = sums[r].score_abs;
  const ScoreSizes sizes = score_sizes(block, c, r);
  const double magnitude = sizes.largest;
  if (from.sink) farthest = std::max(farthest, std::fabs(double{*from.sink}));
  // The anchor may lie outside the slots: there may be more query rows than slots.
  const int64_t from_first = from.anchor - int64_t{slots.front()};
  const int64_t from_last = from.anchor - int64_t{slots.back()};
  const double bias_max = std::fabs(double{from.alibi_slope}) *
                          static_cast<double>(std::max(std::abs(from_first), std::abs(from_last)));
  const double lse_abs = std::fabs(row.lse);

  const double n = static_cast<double>(row.keys);
  const double weight_error =
      (block.shape.dim_k + 10) * kUnit64 * std::max(magnitude + bias_max, farthest) +
      0x1p-49 * (1 + magnitude + bias_max + farthest);
  const double relative = 1.01 * (2 * weight_error + 2 * (n + 6) * kUnit64);
  row.lse_own_error = relative + (lse_abs + farthest + 1) * 0x1p-49;

  // Weights of exactly one: the full bound may leave out everything but the division.
  const bool maybe_exact = may_be_unit(r) && !from.sink;
  const double quantum_error = c.dequantised_quantum * 1.01 * query_norm[r] * block.shape.dim_k *
                               std::fabs(double{block.shape.scale});
  const double rotation_error = c.scores < 1 ? 2.1 * sizes.key * rotation_norm(from) : 0;
  const double error_max = c.scores * (magnitude + sizes.floor) + quantum_error + rotation_error +
                           c.tanh * (farthest + bias_max) + c.bias * bias_max +
                           (2 * c.argument + 2 * c.distance) * farthest + c.exponential +
                           (c.split_scores + c.split_lse) * farthest + c.split_lse * lse_abs +
                           c.split_constant;
  const double quantum = c.probability_absolute *
                         (c.probability_normalised ? std::max(1.0, total) : 1) /
                         (c.scale_in_probability ? std::min(1.0, scale_min) : 1);
  row.vacuous = !operands_fit(c) || !(error_max < 0.25) || !(c.row_sum < 1) ||
                !(c.accumulation < 1) ||
                !(1.4 * c.probability_relative + n * quantum / total < 0.5);
  const double row_sum = maybe_exact ? 0 : c.row_sum;
  row.lse_bound_low = maybe_exact ? 0
                                  : (row_sum + c.exponential + kUnit32 * (2 * lse_abs + 4) +
                                     c.log2_error * 0x1.62e42fefa39efp-1) *
                                        (1 - 0x1p-30);
  row.dyadic = may_be_dyadic(block, profile, r);
  const double smallest = c.probability_relative + c.accumulation;  // of rounding[i] / weight[i]
  own_relative[r] = relative;
  rounding_min[r] = smallest;
  // B1 follows the accumulation error and may find none: P's rounding is all that surely counts.
  const double share =
      order_is_known(profile) ? c.probability_relative / smallest * (1 - 0x1p-40) : 1;
  const size_t at = r * value_stride;
  finish_elements({.total = total,
                   .centre = profile.row_sum == RowSum::kOfRounded ? sums[r].rounding : 0,
                   .share = maybe_exact ? 0 : share,
                   .size_share = row_sum + c.division,
                   .relative = relative,
                   .smallest = smallest,
                   .tiny = 0x1p-1000 * value_max},
                  {&output[at], &absolute[at], &bound[at], &error[at]}, block.shape.dim_v);
}

}  // namespace kv::reference
