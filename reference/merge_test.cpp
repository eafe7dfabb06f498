// Conforming merges of both kinds stay inside the bound; a dropped split, a stale one and a mix-up
// of bases do not.
#include "reference/merge.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "reference/elementary.h"
#include "reference/soundness/draw.h"

namespace kv::reference {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr float kLog2e = 1.44269504088896340736f, kLn2 = 0.693147180559945309417f;
constexpr uint32_t kDim = 16;

struct Splits {
  std::vector<float> lse, outputs;
  mutable std::vector<double> wide = {};  // of lse
  MergeInputs inputs() const {
    wide.assign(lse.begin(), lse.end());
    return {static_cast<uint32_t>(lse.size()), kDim, outputs, wide};
  }
};

Splits draw_splits(Draw& draw) {
  Splits s;
  const double spread = draw.of({0.1, 3.0, 20.0, 200.0}), base = draw.normal() * spread;
  const uint64_t count = 1 + draw.below(16);
  for (uint64_t i = 0; i < count; ++i) {
    const bool empty = i > 0 && draw.one_in(10);
    s.lse.push_back(empty ? kMinusInfinity : static_cast<float>(base + draw.normal() * spread));
    for (uint32_t j = 0; j < kDim; ++j) {
      s.outputs.push_back(empty ? 0
                                : static_cast<float>(draw.normal() * (draw.one_in(7) ? 100 : 1)));
    }
  }
  return s;
}

float ex2(float z, Draw& draw) {
  if (z == 0) return 1;
  if (!(z > -126)) return 0;
  const float exact = static_cast<float>(exp2_of(double{z}));
  const int ulps = static_cast<int>(draw.below(5)) - 2;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(exact) + static_cast<uint32_t>(ulps));
}

struct Merged {
  std::vector<float> output = std::vector<float>(kDim, 0);
  float lse = 0;
};

Merged at_once(const Splits& s, Draw& draw) {
  Merged m;
  float max = kMinusInfinity, sum = 0;
  for (float x : s.lse) max = std::max(max, x);
  std::vector<float> weight;
  for (float x : s.lse) {
    weight.push_back(x == kMinusInfinity ? 0 : ex2((x - max) * kLog2e, draw));
    sum += weight.back();
  }
  for (size_t i = 0; i < s.lse.size(); ++i) {
    const float w = weight[i] / sum;
    for (uint32_t j = 0; j < kDim; ++j) {
      m.output[j] = std::fma(w, s.outputs[i * kDim + j], m.output[j]);
    }
  }
  m.lse = max + static_cast<float>(log_at_least_one(double{sum}));
  return m;
}

Merged in_turn(const Splits& s, Draw& draw) {
  Merged m;
  float max = kMinusInfinity, sum = 0;
  for (size_t i = 0; i < s.lse.size(); ++i) {
    if (s.lse[i] == kMinusInfinity) continue;
    const float z = s.lse[i] * kLog2e, next = std::max(max, z);
    const float old = max == kMinusInfinity ? 0 : ex2(max - next, draw);
    const float fresh = ex2(z - next, draw);
    sum = sum * old + fresh;
    for (uint32_t j = 0; j < kDim; ++j) {
      m.output[j] = m.output[j] * old + s.outputs[i * kDim + j] * fresh;
    }
    max = next;
  }
  for (float& x : m.output) x *= 1 / sum;
  const double log2_sum = log_at_least_one(double{sum}) * 0x1.71547652b82fep+0;
  m.lse = (max + static_cast<float>(log2_sum)) * kLn2;
  return m;
}

// Largest error over bound of the output, and of the LSE.
std::pair<double, double> ratios(const Splits& truth, const Merged& got) {
  const MergeEstimate e = merge_splits(truth.inputs(), Profile{});
  double worst = 0;
  for (uint32_t j = 0; j < kDim; ++j) {
    worst = std::max(worst, std::fabs(got.output[j] - e.output[j]) / (e.bound[j] + e.own_error[j]));
  }
  return {worst, std::fabs(got.lse - e.lse) / (e.lse_bound + e.lse_own_error)};
}

TEST(Merge, ConformingMergesStayInside) {
  const uint64_t trials = std::getenv("KV_FULL") ? 400'000 : 8'000;
  double worst = 0, worst_lse = 0;
  for (uint64_t seed = 0; seed < trials; ++seed) {
    Draw draw(seed);
    const Splits s = draw_splits(draw);
    for (const Merged& m : {at_once(s, draw), in_turn(s, draw)}) {
      const auto [output, lse] = ratios(s, m);
      ASSERT_LE(output, 1) << seed;
      ASSERT_LE(lse, 1) << seed;
      worst = std::max(worst, output);
      worst_lse = std::max(worst_lse, lse);
    }
  }
  RecordProperty("largest_output_ratio", std::to_string(worst));
  RecordProperty("largest_lse_ratio", std::to_string(worst_lse));
  EXPECT_GT(worst, 0.1);
  EXPECT_GT(worst_lse, 0.05);
}

bool rejected(const Splits& truth, const Splits& seen, Draw& draw) {
  const auto [output, lse] = ratios(truth, at_once(seen, draw));
  return output > 1 || lse > 1;
}

TEST(Merge, FaultsAreRejected) {
  uint64_t dropped = 0, stale = 0, mixed = 0, trials = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Draw draw(seed + 5'000);
    Splits s = draw_splits(draw);
    if (s.lse.size() < 2) continue;
    // Comparable weights: the loss of a split that weighs nothing is no loss.
    for (float& x : s.lse) x = static_cast<float>(2 + draw.normal());
    ++trials;
    Splits wrong = s;
    wrong.lse.back() = kMinusInfinity;
    dropped += rejected(s, wrong, draw);
    wrong = s;
    for (uint32_t j = 0; j < kDim; ++j) wrong.outputs[j] = wrong.outputs[kDim + j] + 0.01f;
    stale += rejected(s, wrong, draw);
    wrong = s;
    for (float& x : wrong.lse) x *= kLn2;
    mixed += rejected(s, wrong, draw);
  }
  EXPECT_EQ(dropped, trials);
  EXPECT_EQ(stale, trials);
  EXPECT_EQ(mixed, trials);
}

// The tier that publishes violations and the one that accepts are of one value.
TEST(Merge, TheMpfrTierAgreesWithinTheDoubleTiersOwnError) {
  Draw draw(21);
  for (int trial = 0; trial < 200; ++trial) {
    const Splits s = draw_splits(draw);
    const MergeInputs in = s.inputs();
    const MergeEstimate e = merge_splits(in, Profile{});
    for (int64_t j = -1; j < int64_t{kDim}; j += 5) {
      const MergeValue exact = merge_value(in, e, {.column = j}, DType::kF32);
      const double value = j < 0 ? e.lse : e.output[static_cast<size_t>(j)];
      const double own = j < 0 ? e.lse_own_error : e.own_error[static_cast<size_t>(j)];
      EXPECT_LE(std::fabs(exact.value - value), own + 0x1p-52 * std::fabs(value)) << j;
      EXPECT_LE(exact.low, static_cast<float>(exact.value));
      EXPECT_GE(exact.high, static_cast<float>(exact.value));
    }
    const MergeValue base_2 = merge_value(in, e, {.lse_factor = 0x1.71547652b82fep+0}, DType::kF32);
    EXPECT_NEAR(base_2.value, e.lse * 0x1.71547652b82fep+0, 1e-9 * (1 + std::fabs(e.lse)));
  }
}

TEST(Merge, AllEmptyIsEmpty) {
  const Splits s{{kMinusInfinity, kMinusInfinity}, std::vector<float>(2 * kDim, 0)};
  const MergeEstimate e = merge_splits(s.inputs(), Profile{});
  EXPECT_TRUE(e.empty);
  EXPECT_EQ(e.lse, kMinusInfinity);
  EXPECT_EQ(e.output[0], 0);
}

// What an empty split's output holds does not matter.
TEST(Merge, EmptySplitsMayHoldNan) {
  Splits s{{1.0f, kMinusInfinity}, std::vector<float>(2 * kDim, 0.5f)};
  s.outputs[kDim] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(merge_splits(s.inputs(), Profile{}).output[0], 0.5);
}

}  // namespace
}  // namespace kv::reference
