#include "reference/precise/row.h"

#include <algorithm>
#include <array>
#include <limits>

#include "harness/core/check.h"
#include "reference/exactness.h"
#include "reference/precise/numbers.h"

namespace kv::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLn2Up = 0x1.62e42fefa39f0p-1;  // above ln 2

// Parts of E_i in the order in which they are named.
enum Part { kScores, kTanh, kBias, kArgument, kDistance, kExponential, kSplit, kParts };
constexpr const char* kPartNames[kParts] = {
    "scores q.k",          "softcap tanh", "ALiBi bias", "rounding of the exponent",
    "distance to the max", "exponential",  "split merge"};

template <class T>
struct Score {
  T x = T(0);          // x_i
  T magnitude = T(0);  // S_i
  T bias = T(0);
};

template <class T>
struct RowState {
  std::vector<T> weight, theta, rounding;   // for each key: w, Theta, r
  std::vector<std::array<T, kParts>> part;  // of E
  T score_max = T(0), score_abs = T(0);     // largest x, and largest |x|
  T reference_abs = T(0);                   // what |running max| may be: |x_max| or |sink|
  T weight_sum = T(0), magnitude_max = T(0);
  T sink_weight = T(0), sink_theta = T(0);
  T theta_sum = T(0), rounding_sum = T(0), theta_max = T(0);  // sums divided by the weight sum
};

// Sums over keys of one column.
template <class T>
struct ColumnSums {
  T output = T(0), magnitude = T(0), rounding = T(0), largest = T(0);  // w v, w|v|, r|v|, |v|
  T spread = T(0), rounding_spread = T(0);                             // w Theta|v-O|, r|v-O|
  std::array<T, kParts> part_spread = {};                              // w E_part |v-O|
};

template <class T>
class RowComputation {
 public:
  RowComputation(const RowInputs& in, const Profile& profile)
      : in_(in),
        c_(coefficients(profile, {.dim_k = in.shape.dim_k,
                                  .keys = in.count(),
                                  .span = in.span,
                                  .softcap = in.shape.softcap > 0,
                                  .scaled_kv = in.scaled_kv,
                                  .query_dtype = in.shape.query_dtype})),
        profile_(profile) {}

  PreciseRow<T> run(const RowQuestion& question);

 private:
  void find_scores();
  void find_weights();
  void find_errors();
  std::array<T, kParts> weight_error(const Score<T>& score) const;
  T theta(const std::array<T, kParts>& parts);
  T split_error(const T& size) const;
  T own_relative_error() const;
  Estimate<T> lse(bool budget) const;
  ColumnSums<T> sums(uint32_t j, bool budget) const;
  Estimate<T> column(uint32_t j, bool budget) const;

  const RowInputs& in_;
  const Coefficients c_;
  const Profile& profile_;
  ExactWeights exact_;
  bool vacuous_ = false;
  std::vector<Score<T>> score_;
  RowState<T> s_;
  T lse_ = T(0);
};

template <class T>
void RowComputation<T>::find_scores() {
  const size_t n = in_.count(), d = in_.shape.dim_k;
  const T scale = T(double{in_.shape.scale}), cap = T(double{in_.shape.softcap});
  for (size_t i = 0; i < n; ++i) {
    T dot(0), size(0);
    for (size_t c = 0; c < d; ++c) {
      const T product = T(in_.query[c]) * T(in_.keys[i * d + c]);
      dot += product;
      size += absolute(product);
    }
    const T factor = scale * T(in_.key_scales[i]);
    T x = factor * dot;
    if (in_.shape.softcap > 0) x = cap * tanh_of(T(x / cap));
    const T bias(in_.bias[i]);
    x += bias;
    score_.push_back({x, absolute(factor) * size, bias});
    s_.score_max = i == 0 ? x : greater_of(s_.score_max, x);
    s_.score_abs = greater_of(s_.score_abs, absolute(x));
    s_.magnitude_max = greater_of(s_.magnitude_max, T(score_[i].magnitude + absolute(bias)));
  }
  s_.reference_abs = absolute(s_.score_max);
  if (in_.sink) {
    const T sink(*in_.sink);
    s_.reference_abs = greater_of(s_.reference_abs, absolute(sink));
    s_.score_abs = greater_of(s_.score_abs, absolute(sink));
    s_.score_max = greater_of(s_.score_max, sink);
  }
}

template <class T>
void RowComputation<T>::find_weights() {
  for (const Score<T>& score : score_) {
    s_.weight.push_back(exp_nonpositive(T(score.x - s_.score_max)));
    s_.weight_sum += s_.weight.back();
  }
  if (in_.sink) {
    s_.sink_weight = exp_nonpositive(T(T(*in_.sink) - s_.score_max));
    s_.weight_sum += s_.sink_weight;
  }
  lse_ = s_.score_max + log_at_least_one(s_.weight_sum);
}

// `size` is the magnitude of the weight's own score: a split's maximum lies between it and the
// row's, so that |LSE of the split| <= the larger of the two + ln n.
template <class T>
T RowComputation<T>::split_error(const T& size) const {
  const T maximum = greater_of(size, s_.reference_abs);
  return T(c_.split_scores) * maximum + T(c_.split_lse) * (maximum + absolute(lse_)) +
         T(c_.split_constant);
}

// The parts of E_i, Lemma 4. tanh errs on the capped logit, before the bias joins it.
template <class T>
std::array<T, kParts> RowComputation<T>::weight_error(const Score<T>& score) const {
  const T size = absolute(score.x);
  std::array<T, kParts> e;
  e[kScores] = T(c_.scores) * score.magnitude;
  e[kTanh] = T(c_.tanh) * absolute(T(score.x - score.bias));
  e[kBias] = T(c_.bias) * absolute(score.bias);
  e[kArgument] = T(c_.argument) * (size + s_.reference_abs);
  e[kDistance] = T(c_.distance) * (s_.score_max - score.x);
  e[kExponential] = T(c_.exponential);
  e[kSplit] = split_error(size);
  return e;
}

template <class T>
T RowComputation<T>::theta(const std::array<T, kParts>& parts) {
  T error(0);
  for (const T& part : parts) error += part;
  if (error < T(1)) return error * (T(1) + error);
  vacuous_ = true;
  return T(0);
}

template <class T>
void RowComputation<T>::find_errors() {
  const T quantum = T(c_.probability_absolute) *
                    (c_.probability_normalised ? greater_of(T(1), s_.weight_sum) : T(1));
  T theta_sum(0), rounding_sum(0);
  for (size_t i = 0; i < in_.count(); ++i) {
    const auto parts = weight_error(score_[i]);
    const T theta_i = exact_.weights ? T(0) : theta(parts);
    const T relative = T(c_.probability_relative) * s_.weight[i] * (T(1) + theta_i);
    const bool rounded = c_.probability_relative > 0 && !exact_.weights;
    s_.part.push_back(parts);
    s_.theta.push_back(theta_i);
    s_.rounding.push_back(rounded ? greater_of(relative, quantum) : T(0));
    theta_sum += s_.weight[i] * theta_i;
    rounding_sum += s_.rounding[i];
    s_.theta_max = greater_of(s_.theta_max, theta_i);
  }
  if (in_.sink) {
    s_.sink_theta = theta(weight_error({.x = T(*in_.sink)}));
    theta_sum += s_.sink_weight * s_.sink_theta;
  }
  s_.theta_sum = theta_sum / s_.weight_sum;
  s_.rounding_sum = rounding_sum / s_.weight_sum;
  const T half(0.5);
  vacuous_ = vacuous_ || !(s_.theta_sum < half) || !(s_.rounding_sum < half) || !(c_.row_sum < 1) ||
             !(c_.accumulation < 1);
}

// Error of this computation, relative to sum p|v| + |O|: twice the error of a weight (numerator and
// denominator), and the two sums.
template <class T>
T RowComputation<T>::own_relative_error() const {
  const double n = static_cast<double>(in_.count()), d = in_.shape.dim_k;
  const T unit(NumberTraits<T>::kUnit);
  const T weight = T(d + 10) * unit * greater_of(s_.magnitude_max, s_.score_abs) +
                   T(NumberTraits<T>::kFunction) * (T(1) + s_.magnitude_max + s_.score_abs);
  return T(1.01) * (T(2) * weight + T(2 * (n + 6)) * unit);
}

template <class T>
Estimate<T> RowComputation<T>::lse(bool budget) const {
  Estimate<T> e;
  e.value = lse_;
  const T theta = s_.theta_sum / (T(1) - s_.theta_sum);
  const T row_sum = exact_.row_sum ? T(0) : T(c_.row_sum);
  const T rounded =
      profile_.row_sum == RowSum::kOfFp32 ? T(0) : s_.rounding_sum / (T(1) - s_.rounding_sum);
  const T arithmetic = T(kUnit32) * (T(3) * s_.reference_abs + T(2) * absolute(lse_) + T(4));
  const T log2_of_sum = (lse_ - s_.score_max) * T(1.4426950408889636);
  const T logarithm = T(c_.log2_error * kLn2Up) * greater_of(T(1), log2_of_sum);
  const T split = split_error(s_.reference_abs);
  e.bound = (theta + row_sum + rounded + arithmetic + logarithm + split) * T(kSlack);
  e.own_error =
      own_relative_error() + (absolute(lse_) + s_.score_abs + T(1)) * T(NumberTraits<T>::kFunction);
  if (vacuous_) e.bound = T(kInfinity);
  if (!budget) return e;
  const auto line = [&e](const char* name, const T& value) {
    e.budget.push_back({name, to_double_up(value)});
  };
  line("weights (scores, exponential)", theta);
  line("normaliser", row_sum);
  line("P rounding", rounded);
  line("fp32 arithmetic", arithmetic);
  line("logarithm", logarithm);
  line("split merge", split);
  return e;
}

template <class T>
ColumnSums<T> RowComputation<T>::sums(uint32_t j, bool budget) const {
  ColumnSums<T> t;
  const size_t n = in_.count(), d = in_.shape.dim_v;
  std::vector<T> v;
  for (size_t i = 0; i < n; ++i) {
    v.push_back(T(in_.value_scales[i]) * T(in_.values[i * d + j]));
    const T size = absolute(v[i]);
    t.output += s_.weight[i] * v[i];
    t.magnitude += s_.weight[i] * size;
    t.rounding += s_.rounding[i] * size;
    t.largest = greater_of(t.largest, size);
  }
  t.output = t.output / s_.weight_sum;
  for (size_t i = 0; i < n; ++i) {
    const T distance = absolute(T(v[i] - t.output));
    t.spread += s_.weight[i] * s_.theta[i] * distance;
    t.rounding_spread += s_.rounding[i] * distance;
    if (!budget) continue;
    for (int p = 0; p < kParts; ++p) {
      t.part_spread[p] += s_.weight[i] * s_.part[i][p] * distance;
    }
  }
  // A sink is a key with v = 0.
  t.spread += s_.sink_weight * s_.sink_theta * absolute(t.output);
  return t;
}

template <class T>
Estimate<T> RowComputation<T>::column(uint32_t j, bool budget) const {
  const ColumnSums<T> t = sums(j, budget);
  const T one(1), weight_sum = s_.weight_sum, size = absolute(t.output);
  const bool exact_sum =
      exact_.weights && !in_.scaled_kv &&
      column_is_exact(profile_.values, std::span(in_.values).subspan(j), in_.shape.dim_v);
  const T gain = (one + s_.theta_max) / (one - s_.theta_sum);
  const T spread = t.spread / weight_sum / (one - s_.theta_sum);
  const T plain = t.rounding / weight_sum;
  const T centred = t.rounding_spread / weight_sum / (one - s_.rounding_sum);
  const T rounding = gain * (profile_.row_sum == RowSum::kOfFp32      ? plain
                             : profile_.row_sum == RowSum::kOfRounded ? centred
                                                                      : greater_of(plain, centred));
  const T accumulation = exact_sum ? T(0) : gain * T(c_.accumulation) * t.magnitude / weight_sum;
  const T before = spread + rounding + accumulation;
  const T row_sum = (size + before) * T(exact_.row_sum ? 0 : c_.row_sum);
  const T division = (size + before) * T(c_.division);
  const T underflow = T(c_.underflow) * t.largest;
  Estimate<T> e;
  e.value = t.output;
  e.bound = (before + row_sum + division + underflow) * T(kSlack);
  e.own_error = own_relative_error() * (t.magnitude / weight_sum + size) +
                T(NumberTraits<T>::kTiny) * t.largest;
  if (vacuous_) e.bound = T(kInfinity);
  if (!budget) return e;
  T parts(0);
  for (const T& part : t.part_spread) parts += part;
  const auto line = [&e](const char* name, const T& value) {
    e.budget.push_back({name, to_double_up(value)});
  };
  for (int p = 0; p < kParts; ++p) {
    const bool none = !(parts > T(0)) || exact_.weights;
    line(kPartNames[p], none ? T(0) : T(spread * t.part_spread[p] / parts));
  }
  line("P rounding", rounding);
  line("accumulation", accumulation);
  line("normaliser", row_sum);
  line("division", division);
  line("underflow", underflow);
  return e;
}

template <class T>
PreciseRow<T> RowComputation<T>::run(const RowQuestion& question) {
  find_scores();
  find_weights();
  bool zero = true, biased = in_.sink.has_value();
  for (size_t i = 0; i < in_.count(); ++i) {
    zero = zero && !(score_[i].magnitude > T(0));
    biased = biased || in_.bias[i] != 0;
  }
  exact_ = exact_weights(profile_, {.scores_zero = zero, .biased = biased, .keys = in_.count()});
  find_errors();
  PreciseRow<T> row;
  row.vacuous = vacuous_;
  row.exact = exact_.weights;
  row.lse = lse(question.budget);
  for (uint32_t j : question.columns) row.columns.push_back(column(j, question.budget));
  return row;
}

}  // namespace

template <class T>
PreciseRow<T> precise_row(const RowInputs& inputs, const Profile& profile,
                          const RowQuestion& question) {
  KV_CHECK(inputs.count() > 0, "an empty row has no formula");
  return RowComputation<T>(inputs, profile).run(question);
}

template PreciseRow<double> precise_row(const RowInputs&, const Profile&, const RowQuestion&);
template PreciseRow<DoubleDouble> precise_row(const RowInputs&, const Profile&, const RowQuestion&);
template PreciseRow<Mpfr256> precise_row(const RowInputs&, const Profile&, const RowQuestion&);
template PreciseRow<Mpfr512> precise_row(const RowInputs&, const Profile&, const RowQuestion&);
template PreciseRow<Mpfr1024> precise_row(const RowInputs&, const Profile&, const RowQuestion&);

}  // namespace kv::reference
