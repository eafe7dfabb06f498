#include "reference/coverage_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kv::reference {
namespace {

double rounded(DType type, double x) { return decode(type, encode(type, x)); }

// An accumulator that keeps one bit less of a sum of integers.
Accumulation one_bit_less(const Accumulation& a) {
  const int bits = a.fused_multiply_add ? 24 : std::min(a.fraction_bits, a.result_bits);
  return {a.name, a.products, bits - 1, bits - 1, false};
}

}  // namespace

CoverageRow::CoverageRow(const RowInputs& in, const Profile& profile, DType output_dtype)
    : facts(in, profile), type_(output_dtype) {
  const Estimate<double> lse = lse_estimate(facts, false);
  lse_radius = lse.bound * kSlack + 2 * lse.own_error;
  const std::vector<ColumnSums<double>> sums = all_columns();
  for (uint32_t j = 0; j < in.shape.dim_v; ++j) columns.push_back(make_column(j, sums[j]));
}

// column_sums of every column, key by key, with the same bits: plain loops over columns that the
// compiler turns into vectors.
std::vector<ColumnSums<double>> CoverageRow::all_columns() const {
  const size_t n = facts.in.count(), columns = facts.in.shape.dim_v;
  std::vector<double> output(columns), sized(columns), round(columns), largest(columns);
  std::vector<double> spread(columns), round_spread(columns);
  for (size_t i = 0; i < n; ++i) {
    const double* value = &facts.in.values[i * columns];
    const double scale = facts.in.value_scales[i];
    const double w = facts.weight[i], r = facts.rounding[i];
    for (size_t j = 0; j < columns; ++j) {
      const double v = scale * value[j], size = absolute(v);
      output[j] += w * v;
      sized[j] += w * size;
      round[j] += r * size;
      largest[j] = largest[j] < size ? size : largest[j];
    }
  }
  for (double& o : output) o /= facts.weight_sum;
  for (size_t i = 0; i < n; ++i) {
    const double* value = &facts.in.values[i * columns];
    const double scale = facts.in.value_scales[i];
    const double w = facts.weight[i] * facts.theta[i], r = facts.rounding[i];
    for (size_t j = 0; j < columns; ++j) {
      const double distance = absolute(scale * value[j] - output[j]);
      spread[j] += w * distance;
      round_spread[j] += r * distance;
    }
  }
  std::vector<ColumnSums<double>> all(columns);
  for (size_t j = 0; j < columns; ++j) {
    all[j].output = output[j];
    all[j].magnitude = sized[j];
    all[j].rounding = round[j];
    all[j].largest = largest[j];
    all[j].spread = spread[j] + facts.sink_weight * facts.sink_theta * absolute(output[j]);
    all[j].rounding_spread = round_spread[j];
  }
  return all;
}

// `radius` includes every error of this computation.
AdmissibleInterval CoverageRow::admissible(double centre, double radius) const {
  return {rounded(type_, centre - radius), rounded(type_, centre + radius)};
}

AdmissibleInterval CoverageRow::lse_interval() const {
  const auto single = [](double x) { return rounded(DType::kF32, x); };
  return {single(facts.lse - lse_radius), single(facts.lse + lse_radius)};
}

CoverageColumn CoverageRow::make_column(uint32_t j, const ColumnSums<double>& t) const {
  const Column column{.values = std::span(facts.in.values).subspan(j),
                      .stride = facts.in.shape.dim_v,
                      .skip = facts.unit.negligible};
  const bool exact = facts.unit.certified && column_is_exact(facts.profile.values, column);
  const ColumnBudget<double> b = column_budget(facts, t, exact ? 0.0 : -1.0);
  CoverageColumn c;
  c.output = t.output;
  c.magnitude = t.magnitude / facts.weight_sum;
  c.accumulated = (t.magnitude + t.rounding + facts.value_floor(t.largest)) / facts.weight_sum;
  c.own_error = facts.own_relative_error() * (c.magnitude + std::fabs(c.output));
  c.spread = b.spread;
  c.rounding = b.rounding;
  c.accumulation = b.accumulation;
  c.underflow = b.underflow;
  c.exact_with_more = exact && column_is_exact(one_bit_less(facts.profile.values), column);
  c.admissible = admissible(c.output, b.total() * kSlack + 2 * c.own_error);
  return c;
}

bool CoverageRow::column_is_apart(const CoverageColumn& c, const FaultyRow& row,
                                  const FaultyColumn& f) const {
  const double lost = facts.profile.row_sum == RowSum::kOfFp32 ? 0 : row.rounding;
  const double gain = row.q * (1 + row.theta_max) / (1 - row.theta - lost);
  const double moved = c.output + f.shift, by = std::fabs(f.shift);
  const double spread =
      c.spread + facts.theta_mean * by + row.extra * (c.magnitude + std::fabs(moved)) + f.spread;
  const double rounding = c.rounding + facts.rounding_mean * by + f.rounding;
  const double before = gain * (spread + rounding + c.accumulation + f.accumulation);
  const double bound =
      (before + (std::fabs(moved) + before) * (row.row_sum + facts.c.division) + c.underflow) *
      kSlack;
  const double own = (2 + 2 * row.q) * (c.own_error + 0x1p-45 * by);
  return disjoint(c.admissible, admissible(moved, bound + own));
}

bool CoverageRow::lse_is_apart(const FaultyRow& row, double distance, double second) const {
  const double n = static_cast<double>(facts.in.count());
  const double reference = std::max(facts.reference_abs, second);
  const double size = std::fabs(facts.lse) + second + n;
  double log2_n = 1;
  while (exp2_of(log2_n) < n) ++log2_n;
  const bool rounded_sum = facts.profile.row_sum != RowSum::kOfFp32;
  const double bound = row.theta / (1 - row.theta) + row.row_sum +
                       (rounded_sum ? row.rounding / (1 - row.rounding) : 0) +
                       kUnit32 * (3 * reference + 2 * size + 4) + facts.c.log2_error * log2_n +
                       facts.c.split_constant +
                       (facts.c.split_scores + 2 * facts.c.split_lse) * (reference + size);
  return distance > (lse_radius + bound + 0x1p-40 * (size + 1)) * kSlack;
}

}  // namespace kv::reference
