// The formula of the bound where it can be checked by hand, and the traps of docs/numerics.md §10.
#include "reference/precise/row.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/test_head.h"

namespace kv::reference {
namespace {

Profile tiled(DType probability) {
  return resolve_profile({.shape = shape_of(probability),
                          .declared = {.tile_slots = 64,
                                       .probability_declared = true,
                                       .probability_dtype = probability},
                          .arithmetic = "hopper"});
}

PreciseRow<double> first_column(TestHead& head, const Profile& profile) {
  return precise_row<double>(row_inputs(head.block(), 0), profile,
                             {.columns = {0}, .budget = true});
}

double line(const Estimate<double>& e, const std::string& name) {
  for (const BudgetLine& l : e.budget) {
    if (l.name == name) return l.value;
  }
  ADD_FAILURE() << "no budget line " << name;
  return -1;
}

TEST(PreciseRow, BudgetLinesAddUpToTheBound) {
  TestHead head({.slots = 100, .softcap = 20.0f});
  head.slopes = {0.01f};
  head.sinks = {0.5f};
  const auto row = first_column(head, tiled(DType::kF16));
  for (const Estimate<double>* e : {&row.columns[0], &row.lse}) {
    double sum = 0;
    for (const BudgetLine& l : e->budget) sum += l.value;
    EXPECT_NEAR(sum / e->bound, 1, 1e-6);
  }
}

TEST(PreciseRow, ProbabilityRoundingDominatesInSixteenBits) {
  TestHead head({.slots = 512, .dim_k = 64, .scale = 0.125f});
  const auto row = first_column(head, tiled(DType::kF16));
  EXPECT_GT(line(row.columns[0], "P rounding"), 0.5 * row.columns[0].bound);
  const auto fp32 = first_column(head, tiled(DType::kF32));
  EXPECT_EQ(line(fp32.columns[0], "P rounding"), 0);
  EXPECT_LT(fp32.columns[0].bound, 0.2 * row.columns[0].bound);
}

// V = 1: errors of the weights cancel between numerator and denominator.
TEST(PreciseRow, EqualValuesLeaveNoSpread) {
  TestHead head({.slots = 64});
  for (double& v : head.value) v = 1;
  const auto row = first_column(head, tiled(DType::kF16));
  EXPECT_LT(line(row.columns[0], "scores q.k"), 1e-15);
}

// Trap (a): a bound computed although the weights may be anything is negative or tiny nonsense.
TEST(PreciseRow, HugeScoresAreVacuousNotWrong) {
  TestHead head({.slots = 8, .dim_k = 128, .scale = 1000.0f, .query_size = 30});
  const auto row = first_column(head, tiled(DType::kF16));
  EXPECT_TRUE(row.vacuous);
  EXPECT_EQ(row.columns[0].bound, HUGE_VAL);
  EXPECT_EQ(row.lse.bound, HUGE_VAL);
}

TEST(PreciseRow, OrdinaryScoresAreNotVacuous) {
  TestHead head({.slots = 8, .dim_k = 128, .scale = 0.088f});
  EXPECT_FALSE(first_column(head, tiled(DType::kF16)).vacuous);
}

// Trap (b): a key of tiny weight may have been rounded when the running max was lower: its rounding
// costs at least the quantum of P's type, never nothing.
TEST(PreciseRow, TinyWeightsStillCostAQuantum) {
  TestHead head({.slots = 2, .dim_k = 1, .dim_v = 1, .scale = 1.0f});
  head.query = {1};
  head.key = {0, -40};  // weights 1 and e^-40, far below fp16's smallest subnormal
  head.value = {0, 1000};
  const auto row = first_column(head, tiled(DType::kF16));
  EXPECT_GE(line(row.columns[0], "P rounding"), 1000 * 0x1p-25);
}

// The denominator is rounded too when P is normalised first: no certificate then.
TEST(PreciseRow, ZeroScoresAreExactOnlyWithoutNormalisedProbabilities) {
  TestHead head({.slots = 100, .query_size = 0});
  for (double& v : head.value) v = std::round(4 * v);
  EXPECT_TRUE(first_column(head, tiled(DType::kF16)).exact);
  EXPECT_FALSE(first_column(head, resolve_profile({})).exact);
}

TEST(PreciseRow, ExactRowsLeaveOnlyTheDivision) {
  TestHead head({.slots = 100, .query_size = 0});
  for (double& v : head.value) v = std::round(4 * v);
  const auto row = first_column(head, tiled(DType::kF16));
  EXPECT_EQ(line(row.columns[0], "accumulation"), 0);
  EXPECT_EQ(line(row.columns[0], "normaliser"), 0);
  EXPECT_LE(row.columns[0].bound, 7 * kUnit32 * std::fabs(row.columns[0].value) + 1e-30);
}

// One value with a bit too low for the accumulator: its column, and only it, loses the certificate.
TEST(PreciseRow, ColumnsThatOverflowTheAccumulatorAreNotExact) {
  TestHead head({.slots = 100, .dtype = DType::kF32, .query_size = 0});
  for (double& v : head.value) v = std::round(4 * v);
  head.value[0] += 0x1p-20;
  const auto row = precise_row<double>(row_inputs(head.block(), 0), tiled(DType::kF16),
                                       {.columns = {0, 1}, .budget = true});
  EXPECT_GT(line(row.columns[0], "accumulation"), 0);
  EXPECT_EQ(line(row.columns[1], "accumulation"), 0);
}

// Trap (d): the row sum of the rounded P is compared with L: the LSE must pay for the rounding.
TEST(PreciseRow, RowSumOfRoundedProbabilitiesCostsTheLse) {
  TestHead head({.slots = 100});
  Profile profile = tiled(DType::kF16);
  const double without = first_column(head, profile).lse.bound;
  profile.row_sum = RowSum::kOfRounded;
  EXPECT_GT(first_column(head, profile).lse.bound, without + 0.9 * 0x1p-11);
}

// Trap (e): softcap's tanh error belongs to every score.
TEST(PreciseRow, SoftcapPaysForItsTanh) {
  TestHead plain({.slots = 50, .scale = 1.0f}), capped({.slots = 50, .scale = 1.0f, .softcap = 50});
  EXPECT_EQ(line(first_column(plain, tiled(DType::kF32)).columns[0], "softcap tanh"), 0);
  const auto row = first_column(capped, tiled(DType::kF32));
  EXPECT_GT(line(row.columns[0], "softcap tanh"), 0.5 * row.columns[0].bound);
}

// Found by the campaign: a bias that cancels the capped logit does not cancel its tanh error.
TEST(PreciseRow, TanhErrorIsOfTheCappedLogitNotOfItsSumWithTheBias) {
  TestHead head({.slots = 2, .dim_k = 1, .dim_v = 1, .scale = 1.0f, .softcap = 50});
  head.query = {1};
  head.key = {55, 0};  // capped logits 40.02 and 0
  head.value = {0, 1};
  head.slopes = {40.0f};  // slot 0 is one slot away: both scores are near 0
  const auto row = first_column(head, tiled(DType::kF32));
  EXPECT_NEAR(row.columns[0].value, 0.5, 0.01);
  EXPECT_GT(line(row.columns[0], "softcap tanh"), 0.25 * 40 * 0x1p-11);
}

// Found by the campaign: fp32 weights that are divided one by one are no longer exactly 1.
TEST(PreciseRow, NormalisedFp32ProbabilitiesPayForEachDivision) {
  TestHead head({.slots = 173, .query_size = 0});
  for (double& v : head.value) v = 1;
  const Profile undeclared = resolve_profile({.shape = shape_of(DType::kF32)});
  const auto row = first_column(head, undeclared);
  EXPECT_FALSE(row.exact);
  EXPECT_GT(line(row.columns[0], "P rounding"), 5 * kUnit32);
}

TEST(PreciseRow, SplitsCostAMerge) {
  TestHead head({.slots = 50});
  Profile profile = tiled(DType::kF32);
  const double one = first_column(head, profile).lse.bound;
  profile.splits = 4;
  EXPECT_GT(first_column(head, profile).lse.bound, one);
}

// Design E2: integer scores times ln 2, the largest in every block of 16.
TestHead dyadic_head() {
  TestHead head({.slots = 256, .dim_k = 8, .dim_v = 8, .scale = 0.693147182f, .query_size = 0});
  head.query[3] = 1;
  for (uint32_t i = 0; i < 256; ++i) {
    for (uint32_t c = 0; c < 8; ++c) head.key[i * 8 + c] = i % 16 == 0 ? 0 : -1 - double(i * 7 % 5);
    for (uint32_t j = 0; j < 8; ++j) head.value[i * 8 + j] = double(i * 5 % 9) - 4;
  }
  return head;
}

Estimate<double> strictest(TestHead& head) {
  return precise_row<double>(row_inputs(head.block(), 0), tiled(DType::kF16),
                             {.columns = {0}, .basis = Basis::kProbability})
      .columns[0];
}

TEST(PreciseRow, PowersOfTwoLeaveOnlyNormaliserAndDivision) {
  TestHead head = dyadic_head();
  const Estimate<double> e = strictest(head);
  EXPECT_EQ(e.basis, Basis::kProbability);
  EXPECT_LT(e.bound, 0.05 * first_column(head, tiled(DType::kF16)).columns[0].bound);
}

// Trap (c): without its anchor a block's running maximum may be a score at no integer distance.
TEST(PreciseRow, WithoutAnchorsPowersOfTwoAreNotCertified) {
  TestHead head = dyadic_head();
  for (uint32_t c = 0; c < 8; ++c) head.key[64 * 8 + c] = -1;  // slot 64 anchors its block
  EXPECT_EQ(strictest(head).basis, Basis::kBlackBox);
}

TEST(PreciseRow, AScoreOffTheGridIsNotCertified) {
  TestHead head = dyadic_head();
  head.key[65 * 8 + 3] = -1.5;
  EXPECT_EQ(strictest(head).basis, Basis::kBlackBox);
}

}  // namespace
}  // namespace kv::reference
