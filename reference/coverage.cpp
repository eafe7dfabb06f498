#include "reference/coverage.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/precise/black_box.h"

namespace kv::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double rounded(DType type, double x) { return decode(type, encode(type, x)); }

struct Interval {
  double low = 0, high = 0;
};

bool disjoint(const Interval& a, const Interval& b) { return a.high < b.low || b.high < a.low; }

// `radius` includes every error of this computation.
Interval admissible(DType type, double centre, double radius) {
  return {rounded(type, centre - radius), rounded(type, centre + radius)};
}

// One key left out of the row.
struct Without {
  size_t key = 0;
  double p = 0, q = 1;   // its weight, 1/(1-p)
  double theta = 0;      // sum p Theta over the remaining keys, at most
  double theta_max = 0;  // largest Theta among them, at most
  double rounding = 0;   // sum r over them, divided by their weight sum, at most
  double extra = 0;      // part of Theta due to another maximum
};

class Coverage {
 public:
  Coverage(const RowInputs& in, const Profile& profile, DType output_dtype)
      : facts_(in, profile), type_(output_dtype) {
    find_maxima();
    const Estimate<double> lse = lse_estimate(facts_, false);
    lse_radius_ = lse.bound * kSlack + 2 * lse.own_error;
    const std::vector<ColumnSums<double>> sums = all_columns();
    for (uint32_t j = 0; j < in.shape.dim_v; ++j) columns_.push_back(make_column(j, sums[j]));
  }

  RowCoverage run() const {
    RowCoverage coverage;
    for (size_t i = 0; i < facts_.in.count(); ++i) {
      const double p = facts_.weight[i] / facts_.weight_sum;
      const bool certified = !facts_.vacuous && is_certified(i, p);
      coverage.certified.push_back(certified);
      if (certified) continue;
      coverage.uncertified_weight_max = std::max(coverage.uncertified_weight_max, p);
    }
    return coverage;
  }

 private:
  struct Column {
    double output = 0, magnitude = 0, own_error = 0;
    double spread = 0, rounding = 0, accumulation = 0, underflow = 0;  // divided by L
    Interval admissible;
  };

  void find_maxima() {
    double first = -kInfinity;
    for (size_t i = 0; i < facts_.in.count(); ++i) {
      const double x = facts_.score[i].x;
      if (x > first) {
        second_score_ = first;
        first = x;
        first_key_ = i;
      } else {
        second_score_ = std::max(second_score_, x);
      }
    }
  }

  // column_sums of every column, key by key, with the same bits: plain loops over columns that the
  // compiler turns into vectors.
  std::vector<ColumnSums<double>> all_columns() const {
    const size_t n = facts_.in.count(), columns = facts_.in.shape.dim_v;
    std::vector<double> output(columns), sized(columns), round(columns), largest(columns);
    std::vector<double> spread(columns), round_spread(columns);
    for (size_t i = 0; i < n; ++i) {
      const double* value = &facts_.in.values[i * columns];
      const double scale = facts_.in.value_scales[i];
      const double w = facts_.weight[i], r = facts_.rounding[i];
      for (size_t j = 0; j < columns; ++j) {
        const double v = scale * value[j], size = absolute(v);
        output[j] += w * v;
        sized[j] += w * size;
        round[j] += r * size;
        largest[j] = largest[j] < size ? size : largest[j];
      }
    }
    for (double& o : output) o /= facts_.weight_sum;
    for (size_t i = 0; i < n; ++i) {
      const double* value = &facts_.in.values[i * columns];
      const double scale = facts_.in.value_scales[i];
      const double w = facts_.weight[i] * facts_.theta[i], r = facts_.rounding[i];
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
      all[j].spread = spread[j] + facts_.sink_weight * facts_.sink_theta * absolute(output[j]);
      all[j].rounding_spread = round_spread[j];
    }
    return all;
  }

  Column make_column(uint32_t j, const ColumnSums<double>& t) const {
    const auto values = std::span(facts_.in.values).subspan(j);
    const bool exact = facts_.unit.certified &&
                       column_is_exact(facts_.profile.values, {.values = values,
                                                               .stride = facts_.in.shape.dim_v,
                                                               .skip = facts_.unit.negligible});
    const ColumnBudget<double> b = column_budget(facts_, t, exact ? 0.0 : -1.0);
    Column c;
    c.output = t.output;
    c.magnitude = t.magnitude / facts_.weight_sum;
    c.own_error = facts_.own_relative_error() * (c.magnitude + std::fabs(c.output));
    c.spread = b.spread;
    c.rounding = b.rounding;
    c.accumulation = b.accumulation;
    c.underflow = b.underflow;
    c.admissible = admissible(type_, c.output, b.total() * kSlack + 2 * c.own_error);
    return c;
  }

  bool is_certified(size_t i, double p) const {
    // The only visible key: without it the row is empty and its LSE is -inf.
    if (facts_.in.count() == 1 && !facts_.in.sink) return true;
    // The only unit weight: what remains would be judged without the certificate.
    if (facts_.unit.certified && !(p < 0.75)) return false;
    if (!(p < 1)) return false;
    const Without w = without(i, p);
    return !(w.theta < 0.5) || !(w.rounding < 0.5) ? false : by_lse(w) || by_output(w);
  }

  Without without(size_t i, double p) const {
    const Coefficients& c = facts_.c;
    Without w{.key = i, .p = p, .q = 1 / (1 - p)};
    if (i == first_key_ && !facts_.unit.certified) {
      const double farther = std::max(0.0, std::fabs(second_score_) - facts_.reference_abs);
      const double error = (c.argument + c.split_scores + c.split_lse) * farther;
      w.extra = 2 * error;  // Theta = E (1 + E), E < 1/2
    }
    w.theta_max = facts_.theta_max + w.extra;
    w.theta = std::min(w.q * facts_.theta_mean, facts_.theta_max) + w.extra;
    const double n = static_cast<double>(facts_.in.count());
    w.rounding = std::min(w.q * facts_.rounding_mean,
                          c.probability_relative * (1 + w.theta_max) +
                              n * n * std::max(c.probability_absolute, 2 * kNegligibleWeight));
    return w;
  }

  double row_sum_without(const Without& w) const {
    return facts_.unit.row_sum ? w.rounding : facts_.c.row_sum;
  }

  // LSE' = LSE + ln(1-p), at least p away.
  bool by_lse(const Without& w) const {
    const double n = static_cast<double>(facts_.in.count());
    const double reference = std::max(facts_.reference_abs, std::fabs(second_score_));
    const double size = std::fabs(facts_.lse) + std::fabs(second_score_) + n;
    double log2_n = 1;
    while (exp2_of(log2_n) < n) ++log2_n;
    const bool rounded_sum = facts_.profile.row_sum != RowSum::kOfFp32;
    const double bound = w.theta / (1 - w.theta) + row_sum_without(w) +
                         (rounded_sum ? w.rounding / (1 - w.rounding) : 0) +
                         kUnit32 * (3 * reference + 2 * size + 4) + facts_.c.log2_error * log2_n +
                         facts_.c.split_constant +
                         (facts_.c.split_scores + 2 * facts_.c.split_lse) * (reference + size);
    return w.p > (lse_radius_ + bound + 0x1p-40 * (size + 1)) * kSlack;
  }

  bool by_output(const Without& w) const {
    const double gain = w.q * (1 + w.theta_max) / (1 - w.theta);
    for (uint32_t j = 0; j < columns_.size(); ++j) {
      const Column& c = columns_[j];
      const double shift = w.p * w.q * (c.output - facts_.value(w.key, j));
      const double moved = c.output + shift;
      const double spread = c.spread + facts_.theta_mean * std::fabs(shift) +
                            w.extra * (c.magnitude + std::fabs(moved));
      const double before =
          gain * (spread + c.rounding + facts_.rounding_mean * std::fabs(shift) + c.accumulation);
      const double bound =
          (before + (std::fabs(moved) + before) * (row_sum_without(w) + facts_.c.division) +
           c.underflow) *
          kSlack;
      const double own = (2 + 2 * w.q) * (c.own_error + 0x1p-45 * std::fabs(shift));
      if (disjoint(c.admissible, admissible(type_, moved, bound + own))) return true;
    }
    return false;
  }

  const RowFacts<double> facts_;
  const DType type_;
  std::vector<Column> columns_;
  double lse_radius_ = kInfinity;
  size_t first_key_ = 0;
  double second_score_ = -kInfinity;  // largest score of the other keys
};

}  // namespace

uint64_t RowCoverage::count() const {
  return static_cast<uint64_t>(std::count(certified.begin(), certified.end(), uint8_t{1}));
}

RowCoverage certified_keys(const RowInputs& inputs, const Profile& profile, DType output_dtype) {
  return Coverage(inputs, profile, output_dtype).run();
}

}  // namespace kv::reference
