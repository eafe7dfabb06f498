// The merge in MPFR, for elements that the double tier does not accept.
#include <algorithm>

#include "reference/merge.h"
#include "reference/precise/numbers.h"

namespace kv::reference {
namespace {

double rounded(DType type, double x) { return decode(type, encode(type, x)); }

/// exp(LSE_s - max); 0 for an empty split.
std::vector<Mpfr256> weights(const MergeInputs& in, double max) {
  std::vector<Mpfr256> all;
  for (const double lse : in.lse) {
    const bool empty = lse < 0 && std::isinf(lse);
    all.push_back(empty ? Mpfr256(0) : exp(Mpfr256(lse) - Mpfr256(max)));
  }
  return all;
}

}  // namespace

MergeValue merge_value(const MergeInputs& in, const MergeEstimate& estimate,
                       const MergeQuestion& question, DType rounding) {
  const double max = *std::max_element(in.lse.begin(), in.lse.end());
  const std::vector<Mpfr256> weight = weights(in, max);
  Mpfr256 sum = 0, total = 0;
  for (size_t s = 0; s < weight.size(); ++s) {
    sum += weight[s];
    if (question.column < 0 || weight[s] == 0) continue;
    total += weight[s] * in.outputs[s * in.dim_v + static_cast<size_t>(question.column)];
  }
  const bool is_lse = question.column < 0;
  const double bound = is_lse ? estimate.lse_bound * question.lse_factor
                              : estimate.bound[static_cast<size_t>(question.column)];
  const Mpfr256 value =
      is_lse ? Mpfr256((Mpfr256(max) + log(sum)) * question.lse_factor) : Mpfr256(total / sum);
  return {.value = to_double_down(value),
          .low = rounded(rounding, to_double_down(Mpfr256(value - bound))),
          .high = rounded(rounding, to_double_up(Mpfr256(value + bound))),
          .bound = bound};
}

}  // namespace kv::reference
