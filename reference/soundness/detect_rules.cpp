#include "reference/soundness/detect_rules.h"

#include <algorithm>
#include <cmath>

#include "reference/elementary.h"

namespace kv::reference {
namespace {

double rounded(DType type, double x) { return decode(type, encode(type, x)); }

// An unfused kernel in the output type throughout, as test suites take for comparison.
std::vector<double> low_precision_baseline(const RowInputs& in, DType type) {
  std::vector<double> scores, output(in.shape.dim_v, 0);
  double max = -1e300, sum = 0;
  for (size_t i = 0; i < in.count(); ++i) {
    double s = 0;
    for (size_t c = 0; c < in.shape.dim_k; ++c) {
      s += in.query[c] * rounded(type, in.keys[i * in.shape.dim_k + c] * in.shape.scale);
    }
    scores.push_back(rounded(type, s));
    max = std::max(max, scores.back());
  }
  for (double& s : scores) sum += s = exp_nonpositive(s - max);
  for (size_t i = 0; i < in.count(); ++i) {
    const double p = rounded(type, scores[i] / sum);
    for (size_t j = 0; j < output.size(); ++j) output[j] += p * in.values[i * output.size() + j];
  }
  for (double& o : output) o = rounded(type, o);
  return output;
}

}  // namespace

RowRules::RowRules(RowInputs inputs, const Profile& profile, DType type)
    : inputs_(std::move(inputs)), type_(type) {
  RowDecider decider(inputs_, profile, type);
  const auto interval = [&](int64_t column, Basis basis) {
    const Answer a = decider.estimate({.column = column}, basis);
    if (basis == Basis::kBlackBox && column >= 0) want_.push_back(a.want);
    return Interval{a.low, a.high};
  };
  const std::vector<double> baseline = low_precision_baseline(inputs_, type);
  for (uint32_t j = 0; j < inputs_.shape.dim_v; ++j) {
    black_box_.push_back(interval(j, Basis::kBlackBox));
    profile_.push_back(interval(j, Basis::kProbability));
    const double right = rounded(type, want_[j]);
    baseline_error_ = std::max(baseline_error_, std::fabs(baseline[j] - right));
    const double shifted = rounded(type, rounded(type, right + 0.3) - 0.3);
    rounding_error_ = std::max(rounding_error_, std::fabs(shifted - right));
  }
  lse_ = interval(-1, Basis::kBlackBox);
}

void RowRules::add(const KernelResult& got, Accused& accused, double& error) const {
  for (size_t j = 0; j < want_.size(); ++j) {
    const double x = got.output[j];
    const double difference = std::fabs(x - want_[j]), size = std::fabs(want_[j]);
    accused[kLoose] |= difference > 1e-2 + 1e-2 * size;
    accused[kTight] |= difference > 1e-3 + 1e-3 * size;
    error = std::max(error, std::fabs(x - rounded(type_, want_[j])));
    accused[kBlackBox] |= !black_box_[j].holds(x);
    accused[kCertified] |= !profile_[j].holds(x);
  }
  accused[kLse] |= !lse_.holds(got.lse);
}

Accused judge_rows(const std::vector<RowRules>& rows, const std::vector<KernelResult>& got) {
  Accused accused{};
  double error = 0, baseline = 0, rounding = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    rows[r].add(got[r], accused, error);
    baseline = std::max(baseline, rows[r].baseline_error());
    rounding = std::max(rounding, rows[r].rounding_error());
  }
  accused[kTwice] = error > 2 * baseline + 2 * rounding;
  accused[kBoth] = accused[kBlackBox] || accused[kLse];
  accused[kCertified] = accused[kCertified] || accused[kBlackBox] || accused[kLse];
  return accused;
}

}  // namespace kv::reference
