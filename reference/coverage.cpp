#include "reference/coverage.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/coverage_row.h"

namespace kv::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Keys [first, last) of a row.
struct Group {
  size_t first = 0, last = 0;
};

class Coverage {
 public:
  Coverage(const RowInputs& in, const Profile& profile, DType output_dtype)
      : row_(in, profile, output_dtype), f_(row_.facts), more_(more_coefficients()) {
    for (size_t i = 0; i < count(); ++i) {
      if (f_.score[i].x > f_.score[first_key_].x) first_key_ = i;
    }
  }

  size_t count() const { return f_.in.count(); }
  double weight(size_t i) const { return f_.weight[i] / f_.weight_sum; }
  bool says_something() const { return !f_.vacuous; }

  bool drop_is_certified(const Group& g) const {
    // Without its only keys the row is empty, and its LSE is -inf.
    if (g.last - g.first == count() && !f_.in.sink) return true;
    double p = 0;
    for (size_t i = g.first; i < g.last; ++i) p += weight(i);
    // The only unit weights: what remains would be judged without the certificate.
    if (f_.unit.certified && !(p < 0.75)) return false;
    if (!(p < 1 - 0x1p-30)) return false;
    const double second = largest_outside(g);
    const FaultyRow row = without(g, p, second);
    if (!(row.theta < 0.5) || !(row.rounding < 0.5)) return false;
    if (row_.lse_is_apart(row, p, second)) return true;
    for (uint32_t j = 0; j < row_.columns.size(); ++j) {
      double mean = 0;
      for (size_t i = g.first; i < g.last; ++i) mean += weight(i) / p * f_.value(i, j);
      const CoverageColumn& c = row_.columns[j];
      if (row_.column_is_apart(c, row, {.shift = p * row.q * (c.output - mean)})) return true;
    }
    return false;
  }

  bool double_is_certified(size_t i) const {
    if (f_.c.probability_normalised) return false;
    const double p = weight(i), r = f_.rounding[i] / f_.weight_sum;
    FaultyRow row{.q = 1 / (1 + p)};
    // One more tile, another |LSE|: what the weights may gain.
    row.extra = 2 * (more_.exponential - f_.c.exponential + f_.c.split_lse);
    row.theta_max = f_.theta_max + row.extra;
    row.theta = row.theta_max;
    row.rounding = row.q * (f_.rounding_mean + r);
    row.row_sum = f_.unit.row_sum ? row.rounding : more_.row_sum;
    if (!(row.theta < 0.5) || !(row.rounding < 0.5) || !(row.row_sum < 1)) return false;
    // ln(1 + p) > p - p^2 / 2.
    if (row_.lse_is_apart(row, p * (1 - p / 2), std::fabs(f_.score_max) + 1)) return true;
    for (uint32_t j = 0; j < row_.columns.size(); ++j) {
      const CoverageColumn& c = row_.columns[j];
      const double v = f_.value(i, j), shift = p * row.q * (v - c.output);
      const double moved = std::fabs(c.output + shift), size = std::fabs(v);
      FaultyColumn column{.shift = shift,
                          .spread = p * row.theta_max * (size + moved),
                          .rounding = 2 * r * (size + moved)};
      // The old keys in longer sums, and the new one.
      if (!c.exact_with_more) {
        column.accumulation = 2 * more_.accumulation * (c.accumulated + (p + r) * size);
      }
      if (row_.column_is_apart(c, row, column)) return true;
    }
    return false;
  }

  // The weights, and so the LSE, stay as they are.
  bool swap_is_certified(size_t a, size_t b) const {
    if (a == b) return false;
    const double pa = weight(a), pb = weight(b);
    const double ra = f_.rounding[a] / f_.weight_sum, rb = f_.rounding[b] / f_.weight_sum;
    const FaultyRow row{.theta = f_.theta_mean,
                        .theta_max = f_.theta_max,
                        .row_sum = f_.unit.row_sum ? f_.rounding_mean : f_.c.row_sum,
                        .rounding = f_.rounding_mean};
    for (uint32_t j = 0; j < row_.columns.size(); ++j) {
      const CoverageColumn& c = row_.columns[j];
      const double va = f_.value(a, j), vb = f_.value(b, j), shift = (pa - pb) * (vb - va);
      const double moved = std::fabs(c.output + shift);
      const double sa = std::fabs(va) + moved, sb = std::fabs(vb) + moved;
      FaultyColumn column{.shift = shift,
                          .spread = 2 * f_.theta_max * (pa * sb + pb * sa),
                          .rounding = 2 * (ra * sb + rb * sa)};
      // Exact columns stay exact: they hold the same values.
      if (c.accumulation > 0) {
        column.accumulation = 2 * f_.c.accumulation * ((pa + ra) * sb + (pb + rb) * sa);
      }
      if (row_.column_is_apart(c, row, column)) return true;
    }
    return false;
  }

 private:
  Coefficients more_coefficients() const {
    return coefficients(f_.profile, {.dim_k = f_.in.shape.dim_k,
                                     .keys = count() + 1,
                                     .span = f_.in.span + 1,
                                     .softcap = f_.in.shape.softcap > 0,
                                     .scaled_kv = f_.in.scaled_kv,
                                     .query_dtype = f_.in.shape.query_dtype,
                                     .kv_dtype = f_.in.shape.kv_dtype,
                                     .sink = f_.in.sink.has_value()});
  }

  // Largest magnitude that the maximum may have once the group is gone.
  double largest_outside(const Group& g) const {
    if (first_key_ < g.first || first_key_ >= g.last) return std::fabs(f_.score_max);
    double largest = -kInfinity;
    for (size_t i = 0; i < count(); ++i) {
      if (i < g.first || i >= g.last) largest = std::max(largest, f_.score[i].x);
    }
    if (f_.in.sink) largest = std::max(largest, *f_.in.sink);
    return std::fabs(largest);
  }

  FaultyRow without(const Group& g, double p, double second) const {
    const Coefficients& c = f_.c;
    FaultyRow row{.q = 1 / (1 - p)};
    const bool new_maximum = first_key_ >= g.first && first_key_ < g.last;
    if (new_maximum && !f_.unit.certified) {
      const double farther = std::max(0.0, second - f_.reference_abs);
      // Theta = E (1 + E), E < 1/2.
      row.extra = 2 * (c.argument + c.split_scores + c.split_lse) * farther;
    }
    row.theta_max = f_.theta_max + row.extra;
    row.theta = std::min(row.q * f_.theta_mean, f_.theta_max) + row.extra;
    const double n = static_cast<double>(count());
    row.rounding = row.q * f_.rounding_mean;
    if (!c.scale_in_probability) {
      row.rounding = std::min(row.rounding,
                              c.probability_relative * (1 + row.theta_max) +
                                  n * n * std::max(c.probability_absolute, 2 * kNegligibleWeight));
    }
    row.row_sum = f_.unit.row_sum ? row.rounding : c.row_sum;
    return row;
  }

  const CoverageRow row_;
  const RowFacts<double>& f_;
  const Coefficients more_;  // of a row with one more key
  size_t first_key_ = 0;     // of the largest score
};

RowCoverage cover(const RowInputs& in, const Profile& profile, DType type, bool everything) {
  const Coverage coverage(in, profile, type);
  RowCoverage result;
  for (size_t i = 0; i < in.count(); ++i) {
    const bool certified = coverage.says_something() && coverage.drop_is_certified({i, i + 1});
    result.certified.push_back(certified);
    if (!certified) {
      result.uncertified_weight_max = std::max(result.uncertified_weight_max, coverage.weight(i));
    }
    if (!everything) continue;
    const bool speaks = coverage.says_something();
    result.doubled.push_back(speaks && coverage.double_is_certified(i));
    result.swapped.push_back(speaks && coverage.swap_is_certified(i, (i + 1) % in.count()));
  }
  return result;
}

}  // namespace

uint64_t RowCoverage::count() const {
  return static_cast<uint64_t>(std::count(certified.begin(), certified.end(), uint8_t{1}));
}

RowCoverage certified_keys(const RowInputs& inputs, const Profile& profile, DType output_dtype) {
  return cover(inputs, profile, output_dtype, false);
}

RowCoverage row_coverage(const RowInputs& inputs, const Profile& profile, DType output_dtype) {
  return cover(inputs, profile, output_dtype, true);
}

std::vector<uint8_t> certified_pages(const RowInputs& inputs, const Profile& profile,
                                     DType output_dtype, const PageRequest& request) {
  const Coverage coverage(inputs, profile, output_dtype);
  std::vector<uint8_t> certified;
  for (size_t first = 0; first < inputs.count();) {
    size_t last = first;
    const uint64_t page = inputs.slots[first] / request.page_slots;
    while (last < inputs.count() && inputs.slots[last] / request.page_slots == page) ++last;
    certified.push_back(coverage.says_something() && coverage.drop_is_certified({first, last}));
    first = last;
  }
  return certified;
}

bool certified_apart(const RowInputs& a, const RowInputs& b, const Profile& profile,
                     DType output_dtype) {
  const CoverageRow one(a, profile, output_dtype), other(b, profile, output_dtype);
  if (one.facts.vacuous || other.facts.vacuous) return false;
  if (disjoint(one.lse_interval(), other.lse_interval())) return true;
  for (size_t j = 0; j < one.columns.size(); ++j) {
    if (disjoint(one.columns[j].admissible, other.columns[j].admissible)) return true;
  }
  return false;
}

}  // namespace kv::reference
