// Purpose: the bounds that hold for any order, tiling and splitting: B0 and the LSE's.
// Contract: included by row.cpp and coverage.cpp alone. Source: docs/numerics.md §2.2, §2.5.
#pragma once

#include "reference/precise/row_facts.h"

namespace kv::reference {

/// Sums over keys of one column.
template <class T>
struct ColumnSums {
  T output = T(0);                                      // O_j
  T magnitude = T(0), rounding = T(0), largest = T(0);  // w|v|, r|v|, |v|
  T spread = T(0), rounding_spread = T(0);              // w Theta|v-O|, r|v-O|
  std::array<T, kParts> part_spread = {};               // w E_part |v-O|
};

/// Of kColumnsAtOnce columns.
template <class T>
using BlockSums = std::array<ColumnSums<T>, kColumnsAtOnce<T>>;

template <class T>
void add_part_spreads(const RowFacts<T>& f, uint32_t first, BlockSums<T>& sums) {
  for (size_t i = 0; i < f.in.count(); ++i) {
    const Columns<T> v = f.values(i, first);
    for (size_t k = 0; k < sums.size(); ++k) {
      const T distance = absolute(T(v[k] - sums[k].output));
      for (int p = 0; p < kParts; ++p)
        sums[k].part_spread[p] += f.weight[i] * f.part[i][p] * distance;
    }
  }
}

template <class T>
BlockSums<T> column_sums(const RowFacts<T>& f, uint32_t first, bool budget) {
  constexpr uint32_t kWide = kColumnsAtOnce<T>;
  Columns<T> output = zero_columns<T>(), magnitude = output, rounding = output, largest = output;
  Columns<T> spread = output, rounding_spread = output;
  const size_t n = f.in.count();
  for (size_t i = 0; i < n; ++i) {
    const Columns<T> v = f.values(i, first);
    const T w = f.weight[i], r = f.rounding[i];
    for (uint32_t k = 0; k < kWide; ++k) {
      const T size = absolute(v[k]);
      output[k] += w * v[k];
      magnitude[k] += w * size;
      rounding[k] += r * size;
      largest[k] = greater_of(largest[k], size);
    }
  }
  for (T& o : output) o = o / f.weight_sum;
  for (size_t i = 0; i < n; ++i) {
    const Columns<T> v = f.values(i, first);
    const T w = f.weight[i] * f.theta[i], r = f.rounding[i];
    for (uint32_t k = 0; k < kWide; ++k) {
      const T distance = absolute(T(v[k] - output[k]));
      spread[k] += w * distance;
      rounding_spread[k] += r * distance;
    }
  }
  BlockSums<T> sums;
  for (uint32_t k = 0; k < kWide; ++k) {
    sums[k] = {.output = output[k],
               .magnitude = magnitude[k],
               .rounding = rounding[k],
               .largest = largest[k],
               // A sink is a key with v = 0.
               .spread = spread[k] + f.sink_weight * f.sink_theta * absolute(output[k]),
               .rounding_spread = rounding_spread[k]};
  }
  if (budget) add_part_spreads(f, first, sums);
  return sums;
}

/// The named parts of B0 of one column.
template <class T>
struct ColumnBudget {
  T spread = T(0), rounding = T(0), accumulation = T(0), row_sum = T(0), division = T(0),
    underflow = T(0);
  T total() const {
    return (spread + rounding + accumulation + row_sum + division + underflow) * T(kSlack);
  }
};

/// `accumulation`: an upper bound of the error of P.V, divided by the weight sum, or less than 0 to
/// take the order-free one.
template <class T>
ColumnBudget<T> column_budget(const RowFacts<T>& f, const ColumnSums<T>& t, const T& accumulation) {
  const T one(1), size = absolute(t.output);
  const T left = f.row_sum_left();
  const T gain = (one + f.theta_max) / left;
  const T plain = t.rounding / f.weight_sum;
  // What P loses, numerator and row sum lose alike: unless V's scale was folded into P before.
  const T centred = f.c.scale_in_probability
                        ? T((plain + size * f.rounding_mean) / (one - f.rounding_mean))
                        : T(t.rounding_spread / f.weight_sum / (one - f.rounding_mean));
  ColumnBudget<T> b;
  b.spread = t.spread / f.weight_sum / left;
  const T either = f.profile.row_sum == RowSum::kOfFp32      ? plain
                   : f.profile.row_sum == RowSum::kOfRounded ? centred
                                                             : greater_of(plain, centred);
  // A dequantised V errs while P is rounded: the product of both errors.
  b.rounding = gain * (either + T(f.c.dequantised) * plain);
  b.accumulation =
      accumulation < T(0)
          ? T(gain * (T(f.c.accumulation) * (t.magnitude + t.rounding + f.value_floor(t.largest)) /
                          f.weight_sum +
                      T(f.c.dequantised_quantum) * (one + f.rounding_mean)))
          : accumulation;
  const T before = size + b.spread + b.rounding + b.accumulation;
  b.row_sum = before * (f.unit.row_sum ? f.rounding_mean : T(f.c.row_sum));
  b.division = before * T(f.c.division);
  b.underflow = T(f.c.underflow) * t.largest;
  return b;
}

template <class T>
std::vector<BudgetLine> budget_lines(const RowFacts<T>& f, const ColumnSums<T>& t,
                                     const ColumnBudget<T>& b) {
  std::vector<BudgetLine> lines;
  T parts(0);
  for (const T& part : t.part_spread) parts += part;
  const bool none = f.unit.certified || !(parts > T(0));
  for (int p = 0; p < kParts; ++p) {
    lines.push_back(
        {kPartNames[p], none ? 0 : to_double_up(T(b.spread * t.part_spread[p] / parts))});
  }
  lines.push_back({"P rounding", to_double_up(b.rounding)});
  lines.push_back({"accumulation", to_double_up(b.accumulation)});
  lines.push_back({"normaliser", to_double_up(b.row_sum)});
  lines.push_back({"division", to_double_up(b.division)});
  lines.push_back({"underflow", to_double_up(b.underflow)});
  return lines;
}

template <class T>
Estimate<T> lse_estimate(const RowFacts<T>& f, bool budget) {
  constexpr double kLn2Up = 0x1.62e42fefa39f0p-1;  // above ln 2
  const T one(1), size = absolute(f.lse);
  const T theta = f.theta_mean / (one - f.theta_mean);
  const T row_sum = f.unit.row_sum ? f.rounding_mean : T(f.c.row_sum);
  const T rounded =
      f.profile.row_sum == RowSum::kOfFp32 ? T(0) : f.rounding_mean / (one - f.rounding_mean);
  const T arithmetic = T(kUnit32) * (T(3) * f.reference_abs + T(2) * size + T(4));
  const T log2_of_sum = (f.lse - f.score_max) * T(1.4426950408889636);
  const T logarithm = T(f.c.log2_error * kLn2Up) * greater_of(one, log2_of_sum);
  const T split = f.split_error(f.reference_abs);
  Estimate<T> e;
  e.value = f.lse;
  e.bound = (theta + row_sum + rounded + arithmetic + logarithm + split) * T(kSlack);
  e.own_error = f.own_relative_error() + (size + f.score_abs + one) * T(NumberTraits<T>::kFunction);
  if (!budget) return e;
  e.budget = {{"weights (scores, exponential)", to_double_up(theta)},
              {"normaliser", to_double_up(row_sum)},
              {"P rounding", to_double_up(rounded)},
              {"fp32 arithmetic", to_double_up(arithmetic)},
              {"logarithm", to_double_up(logarithm)},
              {"split merge", to_double_up(split)}};
  return e;
}

}  // namespace kv::reference
