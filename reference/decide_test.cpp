#include "reference/decide.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/attention.h"
#include "reference/test_head.h"

namespace kv::reference {
namespace {

Profile tiled() {
  return resolve_profile({.declared = {.tile_slots = 64,
                                       .probability_declared = true,
                                       .probability_dtype = DType::kF16},
                          .arithmetic = "hopper"});
}

double rounded_f16(double x) { return decode(DType::kF16, encode(DType::kF16, x)); }

struct OneRow {
  TestHead head{{.slots = 64}};
  RowInputs inputs = row_inputs(head.block(), 0);
  double value = precise_row<double>(inputs, tiled(), {.columns = {0}}).columns[0].value;
  double bound = precise_row<double>(inputs, tiled(), {.columns = {0}}).columns[0].bound;
  Answer ask(double got) {
    return RowDecider(inputs, tiled(), DType::kF16).ask({.column = 0, .got = got});
  }
};

TEST(Decide, TheCorrectlyRoundedValueConforms) {
  OneRow s;
  const Answer a = s.ask(rounded_f16(s.value));
  EXPECT_EQ(a.decision, Decision::kConforms);
  EXPECT_EQ(a.tier, Tier::kDouble);
}

TEST(Decide, AValueBeyondTheBoundViolatesAndIsCertifiedByMpfr) {
  OneRow s;
  const Answer a = s.ask(rounded_f16(s.value + 3 * s.bound + 0x1p-8));
  EXPECT_EQ(a.decision, Decision::kViolates);
  EXPECT_EQ(a.tier, Tier::kMpfr);
  EXPECT_FALSE(a.budget.empty());
  EXPECT_NEAR(a.want, s.value, 1e-12);
  EXPECT_NEAR(a.bound / s.bound, 1, 1e-6);
}

TEST(Decide, TheEndsOfTheIntervalConformAndTheirNeighboursViolate) {
  OneRow s;
  const Answer a = s.ask(rounded_f16(s.value));
  for (double sign : {-1.0, 1.0}) {
    const double end = sign < 0 ? a.low : a.high;
    EXPECT_EQ(s.ask(end).decision, Decision::kConforms);
    const double beyond = end + sign * std::fabs(end) * 0x1p-10;
    EXPECT_EQ(s.ask(rounded_f16(beyond)).decision, Decision::kViolates);
  }
}

TEST(Decide, InfinityViolates) {
  OneRow s;
  EXPECT_EQ(s.ask(HUGE_VAL).decision, Decision::kViolates);
}

TEST(Decide, LseInBothBases) {
  OneRow s;
  const double lse = precise_row<double>(s.inputs, tiled(), {}).lse.value;
  const double log2e = 1.4426950408889634;
  const auto ask = [&](double got, double factor) {
    return RowDecider(s.inputs, tiled(), DType::kF16)
        .ask({.got = got, .lse_factor = factor})
        .decision;
  };
  EXPECT_EQ(ask(static_cast<float>(lse), 1), Decision::kConforms);
  EXPECT_EQ(ask(static_cast<float>(lse * log2e), log2e), Decision::kConforms);
  EXPECT_EQ(ask(static_cast<float>(lse * log2e), 1), Decision::kViolates);
  EXPECT_EQ(ask(static_cast<float>(lse), log2e), Decision::kViolates);
  EXPECT_EQ(ask(static_cast<float>(lse) + 1e-3, 1), Decision::kViolates);
}

TEST(Decide, VacuousSaysSoAndAcceptsAnything) {
  TestHead head({.slots = 8, .dim_k = 128, .scale = 1000.0f, .query_size = 30});
  const Answer a = RowDecider(row_inputs(head.block(), 0), tiled(), DType::kF16)
                       .ask({.column = 0, .got = 12345});
  EXPECT_EQ(a.decision, Decision::kConforms);
  EXPECT_TRUE(a.vacuous);
}

// O = 0 exactly and the interval is the single value 0: no precision decides a tie, the rule does.
TEST(Decide, AnExactZeroIsATieAndConforms) {
  TestHead head({.slots = 2, .dim_k = 4, .dim_v = 4, .query_size = 0});
  for (uint32_t j = 0; j < 4; ++j) {
    head.value[j] = 3;
    head.value[4 + j] = -3;
  }
  const RowInputs inputs = row_inputs(head.block(), 0);
  const auto ask = [&](double got) {
    return RowDecider(inputs, tiled(), DType::kF16).ask({.column = 0, .got = got});
  };
  EXPECT_EQ(ask(0).decision, Decision::kConforms);
  EXPECT_TRUE(ask(0).exact);
  EXPECT_EQ(ask(0x1p-24).decision, Decision::kViolates);
}

// As above in fp32, whose numbers lie far closer to 0 than the rounding errors of sums in double:
// that the sums are made without any must be known, or each such element costs a row in MPFR.
TEST(Decide, SumsWithoutRoundingNeedNoMorePrecision) {
  TestHead head({.slots = 24, .dim_v = 2, .dtype = DType::kF32, .query_size = 0});
  for (uint32_t i = 0; i < 24; ++i) {
    const double sign = i % 2 == 0 ? 1 : -1;
    head.value[2 * i] = 3 * sign;
    head.value[2 * i + 1] = i == 0 ? 0x1p-40 : i == 1 ? 0 : 0x1p+20 * sign;
  }
  const RowInputs inputs = row_inputs(head.block(), 0);
  const auto ask = [&](int64_t column, double got) {
    return RowDecider(inputs, tiled(), DType::kF32).ask({.column = column, .got = got});
  };
  EXPECT_EQ(ask(0, 0).decision, Decision::kConforms);
  EXPECT_EQ(ask(0, 0).tier, Tier::kDouble);
  EXPECT_EQ(ask(0, 0x1p-100).decision, Decision::kViolates);
  // 2^-40 beside 2^20 does not fit, and is lost: the sum may not be taken for exact.
  const double least = precise_row<double>(inputs, tiled(), {.columns = {1}}).columns[0].own_error;
  EXPECT_GT(least, 0x1p-40);
}

TEST(Decide, TheFastTierAcceptsNothingThatTheFullBoundRejects) {
  TestHead head({.rows = 4, .slots = 200, .dim_k = 64, .dim_v = 16});
  const HeadBlock& block = head.block();
  HeadEstimator estimator;
  const HeadEstimate& estimate = estimator.run(block, tiled());
  int accepted = 0, looked_closer = 0;
  for (size_t r = 0; r < 4; ++r) {
    const RowInputs inputs = row_inputs(block, r);
    const RowEstimate& row = estimate.rows[r];
    for (int64_t j = 0; j < 16; ++j) {
      for (double t = -2; t <= 2; t += 0.25) {
        const double got = rounded_f16(row.output[j] + t * row.bound_low[j]);
        const FastElement fast{row.output[j], row.bound_low[j], row.own_error[j], got};
        if (!surely_conforms(fast, DType::kF16).conforms) {
          ++looked_closer;
          continue;
        }
        ++accepted;
        EXPECT_EQ(RowDecider(inputs, tiled(), DType::kF16).ask({.column = j, .got = got}).decision,
                  Decision::kConforms);
      }
    }
  }
  EXPECT_GT(accepted, 300);
  EXPECT_GT(looked_closer, 300);
}

// Fails when a row as a whole accepts an element that would not be accepted alone, or passes over
// one whose ratio would have been the largest; and when nothing is passed over.
TEST(Decide, ARowAtOnceSaysWhatItsElementsSay) {
  TestHead head({.rows = 4, .slots = 200, .dim_k = 64, .dim_v = 16});
  HeadEstimator estimator;
  const HeadEstimate& estimate = estimator.run(head.block(), tiled());
  int passed = 0, asked = 0;
  for (const RowEstimate& row : estimate.rows) {
    for (double t = -2; t <= 2; t += 0.0625) {
      for (const DType type : {DType::kF16, DType::kBf16, DType::kF32}) {
        std::vector<double> got;
        for (int j = 0; j < 16; ++j) {
          const double beside = row.output[j] + (j % 3 == 0 ? t : 0) * row.bound_low[j];
          got.push_back(decode(type, encode(type, beside)));
        }
        const FastRow all{row.output, row.bound_low, row.own_error, got.data(), 16};
        for (const double most : {0.0, 0.25, 0.875, 1.5}) {
          for (uint32_t first = 0; first < 16; ++first) {
            const uint32_t end = first_in_question(all, first, type, most);
            asked += end < 16;
            for (uint32_t j = first; j < end; ++j, ++passed) {
              const FastElement alone{row.output[j], row.bound_low[j], row.own_error[j], got[j]};
              EXPECT_TRUE(surely_conforms(alone, type).conforms);
              EXPECT_LE(error_bound_ratio(alone.value, alone.bound_low, got[j], type), most);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(passed, 20000);
  EXPECT_GT(asked, 5000);
}

TEST(Decide, WhatIsNoNumberIsInQuestion) {
  const double value = 1, bound = 1e300, own = 0;
  for (const double got : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    EXPECT_EQ(first_in_question({&value, &bound, &own, &got, 1}, 0, DType::kF16, 1), 0U);
  }
}

TEST(Decide, RatioIsZeroAtTheRoundedValueAndOneAtTheEnd) {
  EXPECT_EQ(error_bound_ratio(1.0, 0.01, 1.0, DType::kF16), 0);
  EXPECT_NEAR(error_bound_ratio(1.0, 0.01, 1.01, DType::kF32), 1, 0.01);
  EXPECT_NEAR(error_bound_ratio(1.0, 0.01, 1.05, DType::kF32), 5, 0.05);
}

}  // namespace
}  // namespace kv::reference
