// Purpose: the rules that the detection table compares, each asked whether one result is wrong.
// Contract: rules of test suites see all rows of the result at once, as those suites do; certified
// rules see each row by itself. kTwice is flash-attention's: twice the error of a baseline in the
// input type, plus a rounding term, maxima over the whole tensor.
// Source: docs/numerics.md §1.3, §5.
#pragma once

#include <array>
#include <vector>

#include "reference/decide.h"
#include "reference/soundness/simulated_kernel.h"

namespace kv::reference {

enum Rule { kLoose, kTight, kTwice, kBlackBox, kLse, kBoth, kCertified, kRules };
inline constexpr const char* kRuleNames[kRules] = {"1e-2", "1e-3", "2x",  "B0",
                                                   "LSE",  "B0+L", "B2+L"};
using Accused = std::array<bool, kRules>;

/// The right answer of one row and everything that the rules need of it, computed once.
class RowRules {
 public:
  RowRules(RowInputs inputs, const Profile& profile, DType type);
  const RowInputs& inputs() const { return inputs_; }
  /// Adds to the maxima over the tensor and to the certified accusations.
  void add(const KernelResult& got, Accused& accused, double& error) const;
  double baseline_error() const { return baseline_error_; }
  double rounding_error() const { return rounding_error_; }

 private:
  struct Interval {
    double low = 0, high = 0;
    bool holds(double x) const { return x >= low && x <= high; }
  };
  RowInputs inputs_;
  DType type_;
  std::vector<double> want_;
  std::vector<Interval> black_box_, profile_;  // of each column
  Interval lse_;
  double baseline_error_ = 0, rounding_error_ = 0;
};

/// All rows of one result.
Accused judge_rows(const std::vector<RowRules>& rows, const std::vector<KernelResult>& got);

}  // namespace kv::reference
