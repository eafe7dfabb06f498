// Purpose: what every bound of one row is made of: scores, weights, and how far a conforming
// kernel's weights may be from them.
// Contract: included by row.cpp, for every number type, and by coverage.cpp. Sums are not
// divided by the weight sum unless the name says `mean`.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "reference/bounds.h"
#include "reference/exactness.h"
#include "reference/precise/numbers.h"
#include "reference/precise/row.h"

namespace kv::reference {

/// Parts of E_i (Lemma 4) in the order in which they are named.
enum Part { kScores, kTanh, kBias, kArgument, kDistance, kExponential, kSplit, kParts };
inline constexpr const char* kPartNames[kParts] = {
    "scores q.k",          "softcap tanh", "ALiBi bias", "rounding of the exponent",
    "distance to the max", "exponential",  "split merge"};

/// Columns that are summed side by side, each as if alone: for double a few vectors of them.
template <class T>
inline constexpr uint32_t kColumnsAtOnce = std::is_same_v<T, double> ? 8 : 1;
template <class T>
using Columns = std::array<T, kColumnsAtOnce<T>>;
template <class T>
Columns<T> zero_columns() {
  Columns<T> zero;
  zero.fill(T(0));
  return zero;
}

template <class T>
struct Score {
  T x = T(0);          // x_i
  T magnitude = T(0);  // S_i
  T bias = T(0);
  T error = T(0);  // of scale * q.k as a kernel may compute it, absolute
};

template <class T>
class RowFacts {
 public:
  RowFacts(const RowInputs& in, const Profile& profile);

  const RowInputs& in;
  const Profile& profile;
  const Coefficients c;

  std::vector<Score<T>> score;
  std::vector<T> weight, theta, rounding;   // w, Theta, r
  std::vector<std::array<T, kParts>> part;  // of E
  T score_max = T(0), score_abs = T(0);     // largest x, and largest |x|
  T reference_abs = T(0);                   // what |running max| may be: |x_max| or |sink|
  T query_sum = T(0);                       // |scale| * sum of |q_c| (rotation error included)
  T magnitude_max = T(0);                   // largest S_i + |bias_i|
  T weight_sum = T(0), lse = T(0);
  T sink_weight = T(0), sink_theta = T(0);
  T theta_mean = T(0), rounding_mean = T(0), theta_max = T(0);
  UnitWeights unit;      // certificate of exactness
  bool vacuous = false;  // the weights may be anything

  /// E_split of a weight whose own score has this magnitude.
  T split_error(const T& size) const;
  /// Of this computation, relative to sum p|v| + |O|: twice the error of a weight (numerator and
  /// denominator), and the two sums.
  T own_relative_error() const;
  /// What fused steps of P.V are aligned to at most besides their products and the accumulator, for
  /// a column whose largest |v| is this (docs/numerics.md §2.1, Lemma 2).
  T value_floor(const T& largest) const;
  /// What the row sum keeps at least, relative to the true one: it may sum rounded P.
  T row_sum_left() const {
    return T(1) - theta_mean - (profile.row_sum == RowSum::kOfFp32 ? T(0) : rounding_mean);
  }
  /// Every weight is 1, exactly and here too: all scores are 0, and none is merely negligible.
  bool weights_are_one() const;
  T value(size_t key, uint32_t column) const {
    return T(in.value_scales[key]) * T(in.values[key * in.shape.dim_v + column]);
  }
  /// From column `first` on, 0 beyond the last.
  Columns<T> values(size_t key, uint32_t first) const {
    const T scale(in.value_scales[key]);
    const double* from = &in.values[key * in.shape.dim_v + first];
    const uint32_t there = in.shape.dim_v - first;
    Columns<T> v = zero_columns<T>();
    if (there >= kColumnsAtOnce<T>) {
      for (uint32_t k = 0; k < kColumnsAtOnce<T>; ++k) v[k] = scale * T(from[k]);
    } else {
      for (uint32_t k = 0; k < there; ++k) v[k] = scale * T(from[k]);
    }
    return v;
  }

 private:
  void find_scores();
  std::pair<T, T> dot_product(const double* key) const;
  T score_error(size_t key, const T& magnitude) const;
  T score_floor(size_t key) const;
  void find_operands();
  bool operands_fit() const;
  void find_weights();
  void find_unit_weights();
  void find_errors();
  std::array<T, kParts> weight_error(const Score<T>& score) const;
  T theta_of(const std::array<T, kParts>& parts);

  double query_max_ = 0;  // largest |q|
  std::vector<double> key_max_,
      value_max_;               // of each key: largest |k|, and |v| where scaled, codes
  double value_code_max_ = 0;   // of scaled V: largest code times its scale, if that exceeds 1
  double value_scale_top_ = 1;  // largest scale of V, at least 1
};

template <class T>
RowFacts<T>::RowFacts(const RowInputs& inputs, const Profile& p)
    : in(inputs),
      profile(p),
      c(coefficients(p, {.dim_k = in.shape.dim_k,
                         .keys = in.count(),
                         .span = in.span,
                         .softcap = in.shape.softcap > 0,
                         .scaled_kv = in.scaled_kv,
                         .query_dtype = in.shape.query_dtype,
                         .kv_dtype = in.shape.kv_dtype,
                         .sink = in.sink.has_value()})) {
  find_operands();
  find_scores();
  find_weights();
  find_unit_weights();
  find_errors();
}

template <class T>
void RowFacts<T>::find_operands() {
  const auto largest = [](const double* from, size_t count) {
    double max = 0;
    for (size_t k = 0; k < count; ++k) max = std::max(max, std::fabs(from[k]));
    return max;
  };
  const size_t dk = in.shape.dim_k, dv = in.shape.dim_v;
  query_max_ = largest(in.query.data(), in.query.size());
  for (size_t i = 0; i < in.count(); ++i) {
    key_max_.push_back(largest(&in.keys[i * dk], dk));
    if (!in.scaled_kv) continue;
    value_max_.push_back(largest(&in.values[i * dv], dv));
    const double top = std::max(1.0, std::fabs(in.value_scales[i]));
    value_scale_top_ = std::max(value_scale_top_, top);
    value_code_max_ = std::max(value_code_max_, top * value_max_.back());
  }
}

// A product of 0 is aligned to nothing.
template <class T>
T RowFacts<T>::score_floor(size_t key) const {
  const double key_max = std::max(c.key_normal, key_max_[key]);
  const double top = std::max(1.0, std::fabs(in.key_scales[key]));
  const double floor =
      std::max(c.query_normal * key_max, c.key_normal * std::max(query_max_, c.query_normal));
  return absolute(T(double{in.shape.scale})) * T(top * kSlack) * T(floor);
}

template <class T>
T RowFacts<T>::value_floor(const T& largest) const {
  if (!(T(0) < largest)) return T(0);
  const T size = in.scaled_kv ? T(value_code_max_) : largest;
  const T floor =
      greater_of(T(T(c.probability_normal) * size), T(c.value_normal * value_scale_top_));
  return floor * (c.probability_normalised ? greater_of(T(1), weight_sum) : T(1));
}

template <class T>
void RowFacts<T>::find_scores() {
  const size_t d = in.shape.dim_k;
  const T scale = T(double{in.shape.scale}), cap = T(double{in.shape.softcap});
  for (double q : in.query) query_sum += absolute(T(q)) * absolute(scale);
  for (double e : in.query_error) query_sum += T(e) * absolute(scale);
  for (size_t i = 0; i < in.count(); ++i) {
    const auto [dot, size] = dot_product(&in.keys[i * d]);
    const T factor = scale * T(in.key_scales[i]), bias(in.bias[i]);
    T x = factor * dot;
    if (in.shape.softcap > 0) x = cap * tanh_of(T(x / cap));
    x += bias;
    const T magnitude = absolute(factor) * size;
    score.push_back({x, magnitude, bias, score_error(i, magnitude)});
    score_max = i == 0 ? x : greater_of(score_max, x);
    score_abs = greater_of(score_abs, absolute(x));
    magnitude_max = greater_of(magnitude_max, T(score[i].magnitude + absolute(bias)));
  }
  reference_abs = absolute(score_max);
  if (!in.sink) return;
  const T sink(*in.sink);
  reference_abs = greater_of(reference_abs, absolute(sink));
  score_abs = greater_of(score_abs, absolute(sink));
  score_max = greater_of(score_max, sink);
}

// q.k and the sum of its magnitudes, in four chains that do not wait for each other.
template <class T>
std::pair<T, T> RowFacts<T>::dot_product(const double* key) const {
  T dot[4] = {T(0), T(0), T(0), T(0)}, size[4] = {T(0), T(0), T(0), T(0)};
  const size_t d = in.query.size();
  const auto add = [&](size_t chain, size_t k) {
    const T product = T(in.query[k]) * T(key[k]);
    dot[chain] += product;
    size[chain] += absolute(product);
  };
  size_t k = 0;
  for (; k + 4 <= d; k += 4) {
    add(0, k);
    add(1, k + 1);
    add(2, k + 2);
    add(3, k + 3);
  }
  for (; k < d; ++k) add(0, k);
  return {(dot[0] + dot[2]) + (dot[1] + dot[3]), (size[0] + size[2]) + (size[1] + size[3])};
}

// The errors of a rotated query meet those of the sum: (1 + scores) times the former.
template <class T>
T RowFacts<T>::score_error(size_t key, const T& magnitude) const {
  const bool sums = T(0) < magnitude || !in.query_error.empty();
  T error = T(c.scores) * (sums ? T(magnitude + score_floor(key)) : magnitude) +
            T(c.dequantised_quantum * 1.01) * query_sum;
  if (in.query_error.empty()) return error;
  const size_t d = in.shape.dim_k;
  T rotation(0);
  for (size_t k = 0; k < d; ++k) {
    rotation += T(in.query_error[k]) * absolute(T(in.keys[key * d + k]));
  }
  const T factor = absolute(T(T(double{in.shape.scale}) * T(in.key_scales[key])));
  return error + factor * rotation * (T(1) + T(c.scores));
}

// Whether every K and V is within the range of what it may be dequantised to, and every P within
// its own where the scale of V is folded into it.
template <class T>
bool RowFacts<T>::operands_fit() const {
  if (!in.scaled_kv) return true;
  for (size_t i = 0; i < in.count(); ++i) {
    if (key_max_[i] * std::fabs(in.key_scales[i]) > c.operand_max) return false;
    if (value_max_[i] * std::fabs(in.value_scales[i]) > c.operand_max) return false;
    if (std::fabs(in.value_scales[i]) > c.folded_scale_max) return false;
  }
  return true;
}

template <class T>
void RowFacts<T>::find_weights() {
  for (const Score<T>& s : score) {
    weight.push_back(exp_nonpositive(T(s.x - score_max)));
    weight_sum += weight.back();
  }
  if (in.sink) {
    sink_weight = exp_nonpositive(T(T(*in.sink) - score_max));
    weight_sum += sink_weight;
  }
  lse = score_max + log_at_least_one(weight_sum);
}

template <class T>
void RowFacts<T>::find_unit_weights() {
  UnitRow row{.biased = in.sink.has_value() || in.scaled_kv || in.shape.softcap > 0};
  for (size_t i = 0; i < in.count(); ++i) {
    row.biased = row.biased || in.bias[i] != 0;
    const bool zero = !(score[i].magnitude > T(0)) && in.query_error.empty();
    const bool tiny = weight[i] < T(kNegligibleWeight);
    row.kinds.push_back(zero ? UnitRow::kZeroScore : tiny ? UnitRow::kNegligible : UnitRow::kOther);
  }
  unit = unit_weights(profile, row);
}

template <class T>
T RowFacts<T>::split_error(const T& size) const {
  // A split's maximum lies between the weight's score and the row's, so that |LSE of the split| is
  // at most the larger of the two + ln n.
  const T maximum = greater_of(size, reference_abs);
  return T(c.split_scores) * maximum + T(c.split_lse) * (maximum + absolute(lse)) +
         T(c.split_constant);
}

// tanh errs on the capped logit, before the bias joins it.
template <class T>
std::array<T, kParts> RowFacts<T>::weight_error(const Score<T>& s) const {
  const T size = absolute(s.x);
  std::array<T, kParts> e;
  e[kScores] = s.error;
  e[kTanh] = T(c.tanh) * absolute(T(s.x - s.bias));
  // The score is rounded once more before the bias joins it.
  const bool biased = T(0) < absolute(s.bias);
  e[kBias] = biased ? T(T(c.bias) * absolute(s.bias) + T(kUnit32) * s.magnitude) : T(0);
  e[kArgument] = T(c.argument) * (size + reference_abs);
  e[kDistance] = T(c.distance) * (score_max - s.x);
  e[kExponential] = T(c.exponential);
  e[kSplit] = split_error(size);
  return e;
}

template <class T>
T RowFacts<T>::theta_of(const std::array<T, kParts>& parts) {
  T error(0);
  for (const T& p : parts) error += p;
  if (error < T(1)) return error * (T(1) + error);
  vacuous = true;
  return T(0);
}

template <class T>
void RowFacts<T>::find_errors() {
  const T quantum =
      T(c.probability_absolute) * (c.probability_normalised ? greater_of(T(1), weight_sum) : T(1));
  T theta_sum(0), rounding_sum(0);
  for (size_t i = 0; i < in.count(); ++i) {
    const auto parts = weight_error(score[i]);
    T theta_i = theta_of(parts);
    T round(0);
    if (unit.certified) {
      // A certified weight is 1, or so small that whatever became of it is less than twice it.
      round = unit.negligible[i] ? T(2) * weight[i] : T(0);
      theta_i = T(0);
    } else if (c.probability_relative > 0) {
      // A scale below 1 that is folded into P makes P's quantum as much larger for V.
      const double scale = c.scale_in_probability ? std::fabs(in.value_scales[i]) : 1;
      const T own_quantum = scale < 1 ? T(quantum / T(scale)) : quantum;
      round = greater_of(T(T(c.probability_relative) * weight[i] * (T(1) + theta_i)), own_quantum);
    }
    part.push_back(parts);
    theta.push_back(theta_i);
    rounding.push_back(round);
    theta_sum += weight[i] * theta_i;
    rounding_sum += round;
    theta_max = greater_of(theta_max, theta_i);
  }
  if (in.sink) {
    // It may be rounded as P is before it is summed.
    const T rounds = profile.row_sum == RowSum::kOfFp32 || !(T(0) < sink_weight)
                         ? T(0)
                         : greater_of(T(c.probability_relative), T(quantum / sink_weight));
    sink_theta = theta_of(weight_error({.x = T(*in.sink)})) + rounds;
    theta_sum += sink_weight * sink_theta;
  }
  theta_mean = theta_sum / weight_sum;
  rounding_mean = rounding_sum / weight_sum;
  const T half(0.5);
  vacuous = vacuous || !operands_fit() || !(theta_mean < half) || !(rounding_mean < half) ||
            !(c.row_sum < 1) || !(c.accumulation < 1);
}

template <class T>
bool RowFacts<T>::weights_are_one() const {
  const T keys(static_cast<double>(in.count()));
  return unit.certified && !(weight_sum < keys) && !(keys < weight_sum) &&
         std::find(unit.negligible.begin(), unit.negligible.end(), 1) == unit.negligible.end();
}

template <class T>
T RowFacts<T>::own_relative_error() const {
  const double n = static_cast<double>(in.count()), d = in.shape.dim_k;
  const T unit_roundoff(NumberTraits<T>::kUnit);
  const T of_weight = T(d + 10) * unit_roundoff * greater_of(magnitude_max, score_abs) +
                      T(NumberTraits<T>::kFunction) * (T(1) + magnitude_max + score_abs);
  return T(1.01) * (T(2) * of_weight + T(2 * (n + 6)) * unit_roundoff);
}

}  // namespace kv::reference
