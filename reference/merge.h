// Purpose: the merge of split states judged on its own: partial outputs and their LSE are exact
// inputs, so that a wrong merge is told from wrong partials.
// Contract: w_s = exp(LSE_s - max), O = sum of w_s O_s / sum of w_s, LSE = max + ln of that sum. A
// split with LSE = -inf is empty and weighs nothing. Covers merges in one pass (all weights first)
// and pairwise in turn, in either base, with ex2.approx. All partials empty: an empty row, LSE =
// -inf and O = 0. Source: docs/numerics.md §2.6.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/profile.h"

namespace kv::reference {

struct MergeInputs {
  uint32_t splits = 0, dim_v = 0;
  std::span<const float> outputs;  // [splits][dim_v]
  std::span<const double> lse;     // [splits], natural logarithm
};

struct MergeEstimate {
  bool empty = false;
  std::vector<double> output, bound, own_error;  // [dim_v]
  double lse = 0, lse_bound = 0, lse_own_error = 0;
};

MergeEstimate merge_splits(const MergeInputs& inputs, const Profile& profile);

/// Which element of a merge, and its admissible interval in `rounding`, computed with MPFR.
struct MergeQuestion {
  int64_t column = -1;    // -1: the LSE
  double lse_factor = 1;  // 1: natural logarithm; log2(e): base 2
};
struct MergeValue {
  double value = 0, low = 0, high = 0, bound = 0;
};
MergeValue merge_value(const MergeInputs& inputs, const MergeEstimate& estimate,
                       const MergeQuestion& question, DType rounding);

}  // namespace kv::reference
