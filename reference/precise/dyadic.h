// Purpose: rows whose rounded P is a power of two for every key (design E2): the sums of P.V are
// then exact, and one lost key, a wrong scale or two swapped V rows show in any format.
// Contract: included by row.cpp alone. The certificate needs, and checks:
//  - exact scores: the products of q and k are multiples of one power of two and fit the
//  accumulator;
//  - anchors: every aligned block of 16 slots with a visible key has one of the largest score, so
//    that the running maximum of every tile (a multiple of 16 slots) is the row's, whatever the
//    order, and every rescale factor is ex2(0) = 1 (trap (c) of §10);
//  - each score's distance from the maximum, in base 2, lies so close to an integer that P rounds
//    to that power of two whatever ex2 errs, or P is so small that it rounds to 0.
// It is a claim about how P is rounded: kernels that keep P in fp32 break it (Basis::kProbability).
// Source: docs/numerics.md §2.3 (order-free exact case).
#pragma once

#include <cmath>

#include "reference/precise/black_box.h"

namespace kv::reference {

/// Whether the profile declares what the certificate assumes.
inline bool may_be_dyadic(const RowInputs& in, const Profile& p) {
  return rounding_is_declared(p) && !in.sink && !in.scaled_kv && in.shape.softcap == 0 &&
         in.query_error.empty();
}

template <class T>
class DyadicWeights {
 public:
  explicit DyadicWeights(const RowFacts<T>& f);
  bool certified() const { return certified_; }
  Estimate<T> column(uint32_t j, bool budget) const;

 private:
  bool scores_are_exact() const;
  bool is_anchored() const;
  bool round_weights();
  void find_denominator();

  const RowFacts<T>& f_;
  bool certified_ = false;
  std::vector<double> rounded_;  // 2^k or 0
  std::vector<T> error_;         // relative, of each weight before rounding
  T denominator_ = T(0), relative_ = T(0);
};

template <class T>
DyadicWeights<T>::DyadicWeights(const RowFacts<T>& f) : f_(f) {
  for (const Score<T>& s : f.score) {
    if (s.bias < T(0) || s.bias > T(0)) return;
  }
  certified_ = !f.vacuous && scores_are_exact() && is_anchored() && round_weights();
  if (certified_) find_denominator();
}

template <class T>
bool DyadicWeights<T>::scores_are_exact() const {
  const size_t d = f_.in.shape.dim_k;
  std::vector<double> products(d);
  for (size_t i = 0; i < f_.in.count(); ++i) {
    // Products of two stored numbers of at most 24 bits are exact in double.
    double floor = 0;
    for (size_t c = 0; c < d; ++c) {
      const double q = f_.in.query[c], k = f_.in.keys[i * d + c];
      products[c] = q * k;
      if (products[c] == 0) continue;
      floor = std::max(floor, std::max(std::fabs(q), f_.c.query_normal) *
                                  std::max(std::fabs(k), f_.c.key_normal));
    }
    const std::vector<uint8_t> all(d, 0);
    if (!column_is_exact(f_.profile.scores,
                         {.values = products, .stride = 1, .skip = all, .floor = floor})) {
      return false;
    }
  }
  return true;
}

template <class T>
bool DyadicWeights<T>::is_anchored() const {
  const RowInputs& in = f_.in;
  for (size_t i = 0; i < in.count();) {
    const uint64_t block = in.slots[i] / 16;
    bool anchored = false;
    for (; i < in.count() && in.slots[i] / 16 == block; ++i) {
      anchored = anchored || !(f_.score[i].x < f_.score_max);
    }
    if (!anchored) return false;
  }
  return true;
}

template <class T>
bool DyadicWeights<T>::round_weights() {
  const double unit = dtype_unit_roundoff(f_.profile.probability_dtype);
  const double quantum = f_.c.probability_absolute;
  const double scale = power_of_two(-f_.profile.probability_offset);
  // Smallest normal number of P's type, in final scale.
  const double normal = smallest_normal(f_.profile.probability_dtype) * scale;
  for (size_t i = 0; i < f_.in.count(); ++i) {
    const T x = f_.score[i].x;
    const T error = T(f_.c.argument) * (absolute(x) + f_.reference_abs) +
                    T(f_.c.distance) * (f_.score_max - x) + T(f_.profile.exp2_error) +
                    f_.own_relative_error();
    const T weight = f_.weight[i];
    double rounded = 0;
    if (to_double_up(T(weight * (T(1) + error) * T(1.01))) >= quantum) {
      const double z = to_double_down(T((x - f_.score_max) * T(1.4426950408889634)));
      rounded = power_of_two(static_cast<int>(std::max(-1000.0, std::floor(z + 0.5))));
      const T distance = absolute(T(weight - T(rounded))) / weight;
      if (rounded < normal || !(distance + error < T(0.24 * unit))) return false;
    }
    rounded_.push_back(rounded);
    error_.push_back(error);
  }
  return true;
}

template <class T>
void DyadicWeights<T>::find_denominator() {
  const bool of_rounded = f_.profile.row_sum == RowSum::kOfRounded;
  T sum(0), error(0);
  for (size_t i = 0; i < f_.in.count(); ++i) {
    sum += of_rounded ? T(rounded_[i]) : f_.weight[i];
    if (!of_rounded) error += f_.weight[i] * error_[i] * (T(1) + error_[i]);
  }
  denominator_ = sum;
  const T relative = error / sum + T((f_.c.row_sum + f_.c.division) * 1.0001);
  relative_ = relative / (T(1) - relative);
}

template <class T>
Estimate<T> DyadicWeights<T>::column(uint32_t j, bool budget) const {
  const size_t n = f_.in.count();
  std::vector<double> products(n);
  const std::vector<uint8_t> all(n, 0);
  T numerator(0), size(0), largest(0);
  double floor = 0;
  for (size_t i = 0; i < n; ++i) {
    const double v = f_.in.values[i * f_.in.shape.dim_v + j];
    products[i] = rounded_[i] * v;  // exact: a power of two
    if (v != 0) floor = std::max(floor, rounded_[i] * std::max(std::fabs(v), f_.c.value_normal));
    numerator += T(products[i]);
    size += absolute(T(products[i]));
    largest = greater_of(largest, absolute(T(v)));
  }
  const bool exact = column_is_exact(
      f_.profile.values, {.values = products, .stride = 1, .skip = all, .floor = floor});
  Estimate<T> e;
  e.basis = Basis::kProbability;
  e.value = numerator / denominator_;
  const T accumulation =
      exact ? T(0) : T(f_.c.accumulation) * (size + f_.value_floor(largest)) / denominator_;
  e.bound = (accumulation * (T(1) + relative_) + absolute(e.value) * relative_ +
             T(f_.c.underflow) * largest) *
            T(kSlack);
  e.own_error = f_.own_relative_error() * (size / denominator_ + absolute(e.value)) +
                T(NumberTraits<T>::kTiny) * largest;
  if (!budget) return e;
  e.budget = {{"accumulation", to_double_up(accumulation)},
              {"normaliser and division", to_double_up(T(absolute(e.value) * relative_))}};
  return e;
}

}  // namespace kv::reference
