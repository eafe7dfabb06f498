// Purpose: tighter bounds for a kernel that declares the order in which it visits its tiles.
//   B1  the accumulation error is followed tile by tile, with the prefix sums that the accumulator
//       really holds: for V of mixed signs these are far below the sum of magnitudes.
//   B2  the running maximum is known up to the error of scores, so each P is rounded here as the
//       kernel rounds it: what remains of its rounding are the keys that sit on a boundary.
// Contract: included by row.cpp alone. Within a tile no order is assumed. B2 is a claim about a
// declared algorithm: it also rejects kernels that do not round P, or that let the maximum lag.
// Source: docs/numerics.md §2.1 (Lemma 3), §2.3. Perturbed weights are charged with the quantum of
// P's type (trap (b) of §10), the maximum's own error with softcap's (trap (e)).
#pragma once

#include <algorithm>

#include "reference/precise/black_box.h"

namespace kv::reference {

/// Keys [first, last) of one tile.
struct Tile {
  size_t first = 0, last = 0;
};

inline std::vector<Tile> tiles_in_order(const RowInputs& in, const Profile& p) {
  std::vector<Tile> tiles;
  for (size_t i = 0; i < in.count(); ++i) {
    const bool fresh = i == 0 || in.slots[i] / p.tile_slots != in.slots[i - 1] / p.tile_slots;
    if (fresh) tiles.push_back({i, i});
    tiles.back().last = i + 1;
  }
  if (p.order == TileOrder::kDescending) std::reverse(tiles.begin(), tiles.end());
  return tiles;
}

/// Fused steps that a tile's visible keys take part in, where they lie in the order of their slots.
inline uint64_t tile_steps(const RowInputs& in, const Profile& p, const Tile& tile) {
  const uint64_t keys = tile.last - tile.first, width = p.values.products;
  if (p.values.fused_multiply_add) return keys;
  const uint64_t first = in.slots[tile.first] % p.tile_slots;
  const uint64_t last = in.slots[tile.last - 1] % p.tile_slots;
  return std::min(keys, std::max((last - first + 1) / width, last / width - first / width) + 1);
}

/// Errors of the accumulators after the last tile, in units of the weight sum's scale.
template <class T>
Columns<T> running_errors(const RowFacts<T>& f, const std::vector<Tile>& tiles, uint32_t first) {
  constexpr uint32_t kWide = kColumnsAtOnce<T>;
  Columns<T> error = zero_columns<T>(), prefix = error, perturbation = error;
  for (size_t b = 0; b < tiles.size(); ++b) {
    const Tile& tile = tiles[b];
    Columns<T> sum = zero_columns<T>(), size = sum, change = sum, largest = sum;
    for (size_t i = tile.first; i < tile.last; ++i) {
      const Columns<T> v = f.values(i, first);
      const T w = f.weight[i], changed = f.weight[i] * f.theta[i] + f.rounding[i];
      for (uint32_t k = 0; k < kWide; ++k) {
        const T magnitude = absolute(v[k]);
        sum[k] += w * v[k];
        size[k] += w * magnitude;
        change[k] += changed * magnitude;
        largest[k] = greater_of(largest[k], magnitude);
      }
    }
    const T step(accumulation_error(f.profile.values, tile_steps(f.in, f.profile, tile)));
    const T dequantised(1 + f.c.dequantised);
    for (uint32_t k = 0; k < kWide; ++k) {
      T held = absolute(prefix[k]) + error[k] + perturbation[k];
      if (b > 0) {
        error[k] += T(kUnit32) * held;  // one rescaling
        held = absolute(prefix[k]) + error[k] + perturbation[k];
      }
      error[k] += step * (held + (size[k] + change[k]) * dequantised + f.value_floor(largest[k]));
      prefix[k] += sum[k];
      perturbation[k] += change[k];
    }
  }
  for (uint32_t k = 0; k < kWide; ++k)
    error[k] = error[k] * (T(1) + T(kUnit32)) + T(f.c.dequantised) * perturbation[k];
  return error;
}

/// B1 of one column.
template <class T>
ColumnBudget<T> ordered_budget(const RowFacts<T>& f, const T& running_error,
                               const ColumnSums<T>& sums) {
  const T gain = (T(1) + f.theta_max) / f.row_sum_left();
  const T accumulation =
      gain * (running_error / f.weight_sum + T(f.c.dequantised) * sums.magnitude / f.weight_sum +
              T(f.c.dequantised_quantum) * (T(1) + f.rounding_mean));
  return column_budget(f, sums, accumulation);
}

/// What B2 knows of a row before any column: P as the kernel rounds it, and the scale of each tile.
template <class T>
class RoundedWeights {
 public:
  RoundedWeights(const RowFacts<T>& f, std::vector<Tile> tiles);
  /// Nothing where they are not usable.
  std::vector<Estimate<T>> columns(uint32_t first, const Columns<T>& errors, bool budget) const;

 private:
  /// Sums over tiles, in the scale of the last.
  struct Sums {
    Columns<T> numerator = zero_columns<T>(), radius = numerator, largest = numerator,
               size = numerator;
  };
  Sums sums(uint32_t first) const;
  struct Scaled {
    T scale = T(1);        // e^(m_b - m_last)
    T scale_error = T(0);  // relative, of the product of the kernel's rescale factors
  };
  void find_scales();
  void round_weights();
  void find_denominator();
  T local_error(size_t i, const T& maximum) const;

  const RowFacts<T>& f_;
  const std::vector<Tile> tiles_;
  T maximum_error_ = T(0);          // of the computed running maximum
  std::vector<T> running_max_;      // after each tile
  std::vector<Scaled> scales_;      // of each tile
  std::vector<T> centre_, radius_;  // of each key's rounded weight, in its tile's scale
  std::vector<T> weight_error_;     // relative, of each key's weight before rounding
  T denominator_ = T(0), relative_ = T(0);
};

template <class T>
RoundedWeights<T>::RoundedWeights(const RowFacts<T>& f, std::vector<Tile> tiles)
    : f_(f), tiles_(std::move(tiles)) {
  T capped_max(0), bias_max(0), score_error_max(0);
  for (const Score<T>& s : f.score) {
    capped_max = greater_of(capped_max, absolute(T(s.x - s.bias)));
    bias_max = greater_of(bias_max, absolute(s.bias));
    score_error_max = greater_of(score_error_max, s.error);
  }
  maximum_error_ = score_error_max + T(f.c.tanh) * capped_max + T(f.c.bias) * bias_max +
                   T(4 * kUnit32) * f.score_abs + f.own_relative_error();
  find_scales();
  round_weights();
  find_denominator();
}

template <class T>
void RoundedWeights<T>::find_scales() {
  std::vector<T> tile_max;
  for (const Tile& tile : tiles_) {
    T max = f_.score[tile.first].x;
    for (size_t i = tile.first; i < tile.last; ++i) max = greater_of(max, f_.score[i].x);
    tile_max.push_back(max);
    running_max_.push_back(running_max_.empty() ? max : greater_of(running_max_.back(), max));
  }
  scales_.resize(tiles_.size());
  uint64_t changes = 0;  // later tiles that may raise the maximum
  for (size_t b = tiles_.size(); b-- > 0;) {
    const T distance = running_max_.back() - running_max_[b];
    scales_[b].scale = exp_nonpositive(T(-distance));
    if (changes > 0) {
      const T error = T((f_.c.distance + 2 * kUnit32)) * distance + T(2) * maximum_error_ +
                      T(static_cast<double>(changes) * (f_.profile.exp2_error + kUnit32));
      scales_[b].scale_error = error < T(1) ? T(error * (T(1) + error)) : T(1);
    }
    if (b > 0 && tile_max[b] > running_max_[b - 1] - T(2) * maximum_error_) ++changes;
  }
}

// E of the weight relative to its tile's running maximum.
template <class T>
T RoundedWeights<T>::local_error(size_t i, const T& maximum) const {
  const Score<T>& s = f_.score[i];
  const T error = s.error + T(f_.c.tanh) * absolute(T(s.x - s.bias)) +
                  T(f_.c.bias) * absolute(s.bias) + maximum_error_ +
                  T(f_.c.argument) * (absolute(s.x) + absolute(maximum)) +
                  T(f_.c.distance) * (maximum - s.x) + T(f_.profile.exp2_error);
  return error < T(0.5) ? T(error * (T(1) + error)) : T(1);
}

template <class T>
void RoundedWeights<T>::round_weights() {
  const DType type = f_.profile.probability_dtype;
  const double unscale = power_of_two(-f_.profile.probability_offset);
  const double scale = power_of_two(f_.profile.probability_offset);
  const auto round = [&](double x) { return decode(type, encode_saturating(type, x)); };
  centre_.resize(f_.in.count());
  radius_.resize(f_.in.count());
  weight_error_.resize(f_.in.count());
  for (size_t b = 0; b < tiles_.size(); ++b) {
    for (size_t i = tiles_[b].first; i < tiles_[b].last; ++i) {
      const T weight = exp_nonpositive(T(f_.score[i].x - running_max_[b])) * T(scale);
      const T error = local_error(i, running_max_[b]) + f_.own_relative_error();
      const double low = round(to_double_down(T(weight * (T(1) - error))));
      const double high = round(to_double_up(T(weight * (T(1) + error))));
      centre_[i] = (T(low) + T(high)) * T(0.5 * unscale);
      radius_[i] = (T(high) - T(low)) * T(0.5 * unscale);
      weight_error_[i] = error;
    }
  }
}

template <class T>
void RoundedWeights<T>::find_denominator() {
  T sum(0), error(0);
  for (size_t b = 0; b < tiles_.size(); ++b) {
    const Scaled& s = scales_[b];
    for (size_t i = tiles_[b].first; i < tiles_[b].last; ++i) {
      if (f_.profile.row_sum == RowSum::kOfRounded) {
        sum += s.scale * centre_[i];
        error += s.scale * (radius_[i] * (T(1) + s.scale_error) + s.scale_error * centre_[i]);
      } else {
        sum += f_.weight[i];
        error +=
            f_.weight[i] * (weight_error_[i] + s.scale_error + weight_error_[i] * s.scale_error);
      }
    }
  }
  denominator_ = sum;
  const T relative = error / sum + T(f_.c.row_sum + f_.c.division) * T(1.0001);
  relative_ = relative < T(0.3) ? T(relative / (T(1) - relative)) : T(-1);  // -1: not usable
}

template <class T>
typename RoundedWeights<T>::Sums RoundedWeights<T>::sums(uint32_t first) const {
  constexpr uint32_t kWide = kColumnsAtOnce<T>;
  Sums s;
  for (size_t b = 0; b < tiles_.size(); ++b) {
    const T scale = scales_[b].scale, scale_error = scales_[b].scale_error;
    Columns<T> sum = zero_columns<T>();
    for (size_t i = tiles_[b].first; i < tiles_[b].last; ++i) {
      const Columns<T> v = f_.values(i, first);
      const T centre = centre_[i], scaled = scale * centre_[i];
      const T radius = radius_[i] * scale * (T(1) + scale_error);
      for (uint32_t k = 0; k < kWide; ++k) {
        const T magnitude = absolute(v[k]);
        sum[k] += centre * v[k];
        s.radius[k] += radius * magnitude;
        s.size[k] += scaled * magnitude;
        s.largest[k] = greater_of(s.largest[k], magnitude);
      }
    }
    for (uint32_t k = 0; k < kWide; ++k) {
      s.numerator[k] += scale * sum[k];
      s.radius[k] += scale_error * scale * absolute(sum[k]);
    }
  }
  return s;
}

template <class T>
std::vector<Estimate<T>> RoundedWeights<T>::columns(uint32_t first, const Columns<T>& errors,
                                                    bool budget) const {
  std::vector<Estimate<T>> all;
  if (relative_ < T(0)) return all;
  const Sums s = sums(first);
  all.resize(kColumnsAtOnce<T>);
  for (uint32_t k = 0; k < kColumnsAtOnce<T>; ++k) {
    Estimate<T>& e = all[k];
    e.basis = Basis::kProbability;
    e.value = s.numerator[k] / denominator_;
    e.bound = ((s.radius[k] + errors[k]) / denominator_ * (T(1) + relative_) +
               absolute(e.value) * relative_ + T(f_.c.underflow) * s.largest[k]) *
              T(kSlack);
    e.own_error = f_.own_relative_error() * (s.size[k] / denominator_ + absolute(e.value)) +
                  T(NumberTraits<T>::kTiny) * s.largest[k];
    if (!budget) continue;
    e.budget = {
        {"P on a rounding boundary, rescaling", to_double_up(T(s.radius[k] / denominator_))},
        {"accumulation", to_double_up(T(errors[k] / denominator_))},
        {"weights, normaliser, division", to_double_up(T(absolute(e.value) * relative_))}};
  }
  return all;
}

}  // namespace kv::reference
