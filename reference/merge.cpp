#include "reference/merge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/core/check.h"
#include "reference/bounds.h"
#include "reference/elementary.h"

namespace kv::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Weights {
  double max = 0, sum = 0, theta_mean = 0, theta_max = 0;
  std::vector<double> weight, theta;
};

// E of a split's weight: rounding of both LSE in the kernel's base and of their difference, its own
// ex2 and one for each later split that raises the maximum.
Weights weigh(const MergeInputs& in, const Profile& p) {
  Weights w;
  w.max = *std::max_element(in.lse.begin(), in.lse.end());
  for (const double lse : in.lse) {
    const bool empty = lse == -kInfinity;
    const double distance = empty ? 0 : w.max - lse;
    const double error = kUnit32 * (2 * std::fabs(lse) + 2 * std::fabs(w.max) + 4 * distance) +
                         p.exp2_error * (in.splits + 1);
    w.weight.push_back(empty ? 0 : exp_nonpositive(-distance));
    w.theta.push_back(empty ? 0 : expm1_bound(error));
    w.sum += w.weight.back();
    w.theta_mean += w.weight.back() * w.theta.back();
    w.theta_max = std::max(w.theta_max, w.theta.back());
  }
  w.theta_mean /= w.sum;
  return w;
}

}  // namespace

MergeEstimate merge_splits(const MergeInputs& in, const Profile& p) {
  KV_CHECK(in.splits > 0 && in.lse.size() == in.splits &&
               in.outputs.size() == size_t{in.splits} * in.dim_v,
           "a merge needs one LSE and one output row for each split");
  MergeEstimate m;
  m.empty = std::all_of(in.lse.begin(), in.lse.end(), [](double x) { return x == -kInfinity; });
  m.lse = -kInfinity;
  m.output.assign(in.dim_v, 0);
  m.bound = m.own_error = m.output;
  if (m.empty) return m;

  const Weights w = weigh(in, p);
  const bool vacuous = !(w.theta_mean < 0.5);
  const double sums = gamma32(2.0 * in.splits + 6);
  const double own = 0x1p-48 * (1 + std::fabs(w.max)) + in.splits * 0x1p-52;
  for (uint32_t j = 0; j < in.dim_v; ++j) {
    double output = 0, magnitude = 0, spread = 0;
    for (uint32_t s = 0; s < in.splits; ++s) {
      const double o = w.weight[s] == 0 ? 0 : in.outputs[size_t{s} * in.dim_v + j];
      output += w.weight[s] * o / w.sum;
      magnitude += w.weight[s] * std::fabs(o) / w.sum;
    }
    for (uint32_t s = 0; s < in.splits; ++s) {
      if (w.weight[s] == 0) continue;
      const double o = in.outputs[size_t{s} * in.dim_v + j];
      spread += w.weight[s] * w.theta[s] * std::fabs(o - output) / w.sum;
    }
    m.output[j] = output;
    m.own_error[j] = own * (magnitude + std::fabs(output));
    m.bound[j] = vacuous ? kInfinity
                         : (spread / (1 - w.theta_mean) + (1 + w.theta_max) * sums * magnitude +
                            p.division_error * std::fabs(output) + 0x1p-125) *
                               kSlack;
  }
  m.lse = w.max + log_at_least_one(w.sum);
  m.lse_own_error = own * (1 + std::fabs(m.lse));
  const double log2_sum = std::max(1.0, (m.lse - w.max) * 1.4426950408889636);
  m.lse_bound = vacuous ? kInfinity
                        : (w.theta_mean / (1 - w.theta_mean) + sums +
                           kUnit32 * (4 * std::fabs(w.max) + 3 * std::fabs(m.lse) + 2) +
                           p.log2_error * 0.6931471805599454 * log2_sum) *
                              kSlack;
  return m;
}

}  // namespace kv::reference
