// What B2 allows from below, against the full bound of decide.h and against the codec.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "reference/attention.h"
#include "reference/decide.h"
#include "reference/elementary.h"
#include "reference/test_head.h"

namespace kv::reference {
namespace {

Profile declared(DType type, bool rounded_sum, TileOrder order = TileOrder::kAscending) {
  return resolve_profile({.shape = shape_of(type),
                          .declared = {.tile_slots = 16,
                                       .order = order,
                                       .probability_declared = true,
                                       .probability_dtype = type,
                                       .row_sum_of_rounded = rounded_sum,
                                       .maximum_is_exact = true},
                          .arithmetic = "cpu"});
}

std::vector<TestHead> heads(DType type) {
  std::vector<TestHead> all;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    TestHead head({.rows = 3,
                   .slots = 5 + static_cast<uint32_t>(seed * 17),
                   .dim_k = seed % 2 == 0 ? 64u : 37u,
                   .dim_v = seed % 3 == 0 ? 16u : 21u,
                   .dtype = type,
                   .output_dtype = type,
                   .softcap = seed % 4 == 3 ? 5.0f : 0.0f,
                   .seed = seed,
                   .query_size = seed == 2 ? 8.0 : 1.0});
    if (seed % 4 == 1) head.slopes.assign(head.options.rows, 0.125f);
    for (uint32_t r = 0; r < head.options.rows; ++r)
      for (uint32_t s = 0; s < head.options.slots; ++s) head.visible[r][s] = (s + r) % 5 != 3;
    all.push_back(std::move(head));
  }
  return all;
}

bool surely(const RoundedEstimate& e, uint32_t column, double got, DType type) {
  return surely_conforms({e.output[column], e.bound_low[column], e.own_error[column], got}, type)
      .conforms;
}

struct Counts {
  int accepted = 0, rejected_by_b2 = 0, rightly_rounded = 0, settled = 0;
};

// Values around the middle, in steps of a quarter of what B2 allows.
void compare(const HeadBlock& block, const RowEstimate& row, size_t r, const Profile& profile,
             Counts& counts) {
  const DType type = block.shape.output_dtype;
  RowDecider decider(row_inputs(block, r), profile, type);
  for (uint32_t j = 0; j < block.shape.dim_v; ++j) {
    const auto ask = [&](double got) {
      return decider.ask({.column = j, .got = got}, Basis::kProbability).decision;
    };
    const double middle = row.rounded.output[j], bound = row.rounded.bound_low[j];
    for (double t = -3; t <= 3; t += 0.25) {
      const double got = decode(type, encode(type, middle + t * (bound + std::fabs(middle) / 256)));
      const FastElement fast{row.output[j], row.bound_low[j], row.own_error[j], got};
      const bool sure = surely_conforms(fast, type).conforms && surely(row.rounded, j, got, type);
      const Decision decision = ask(got);
      counts.accepted += sure;
      counts.rejected_by_b2 += decision == Decision::kViolates;
      ASSERT_TRUE(!sure || decision == Decision::kConforms) << "row " << r << " column " << j;
    }
    const double rounded = decode(type, encode(type, middle));
    ++counts.rightly_rounded;
    counts.settled += surely(row.rounded, j, rounded, type);
  }
}

// The planted fault is the value itself: beyond B2, and accepted when any error is taken from above
// (a bound_low of twice its size, a middle of unrounded P).
TEST(AttentionRounded, WhatItAcceptsB2Accepts) {
  HeadEstimator estimator;
  Counts counts;
  for (DType type : {DType::kF16, DType::kBf16}) {
    for (bool rounded_sum : {false, true}) {
      for (TileOrder order : {TileOrder::kAscending, TileOrder::kDescending}) {
        const Profile profile = declared(type, rounded_sum, order);
        for (TestHead& head : heads(type)) {
          const HeadBlock& block = head.block();
          const HeadEstimate& estimate = estimator.run(block, profile, {.rounded = true});
          for (size_t r = 0; r < block.rows.size(); ++r) {
            const RowEstimate& row = estimate.rows[r];
            if (row.vacuous || row.dyadic) continue;
            ASSERT_EQ(row.rounded.kind, RoundedEstimate::Kind::kKnown);
            compare(block, row, r, profile, counts);
          }
        }
      }
    }
  }
  EXPECT_GT(counts.accepted, 10'000);
  EXPECT_GT(counts.rejected_by_b2, 10'000);
  // It is of use: values next to the middle need no closer look.
  EXPECT_GT(counts.settled, counts.rightly_rounded * 9 / 10);
}

// The middles, radii and the denominator of the definition, where both are made in double.
TEST(AttentionRounded, ItsBoundIsNearlyTheFullOne) {
  HeadEstimator estimator;
  TestHead head({.rows = 2, .slots = 64, .dim_k = 64, .dim_v = 24});
  const HeadBlock& block = head.block();
  for (bool rounded_sum : {false, true}) {
    const Profile profile = declared(DType::kF16, rounded_sum);
    const HeadEstimate& estimate = estimator.run(block, profile, {.rounded = true});
    for (size_t r = 0; r < 2; ++r) {
      const RowInputs inputs = row_inputs(block, r);
      RowTier<double> tier(inputs, profile, Budget::kNone);
      for (uint32_t j = 0; j < 24; ++j) {
        const Estimate<double> full = tier.column(j, Basis::kProbability);
        const RoundedEstimate& low = estimate.rows[r].rounded;
        ASSERT_EQ(full.basis, Basis::kProbability);
        EXPECT_NEAR(low.output[j], full.value, full.bound * 1e-3);
        EXPECT_LE(low.bound_low[j], full.bound);
        EXPECT_GT(low.bound_low[j], 0.5 * full.bound);
      }
    }
  }
}

TEST(AttentionRounded, WhereP_IsNotRoundedAsDeclaredItSaysSo) {
  using Kind = RoundedEstimate::Kind;
  HeadEstimator estimator;
  TestHead head({.rows = 1, .slots = 8});
  const auto kind = [&](const Profile& profile, bool asked) {
    return estimator.run(head.block(), profile, {.rounded = asked}).rows[0].rounded.kind;
  };
  const Profile known = declared(DType::kF16, true), unknown = resolve_profile({});
  EXPECT_EQ(kind(known, true), Kind::kKnown);
  EXPECT_EQ(kind(known, false), Kind::kNotAsked);
  EXPECT_EQ(kind(unknown, true), Kind::kNone);
  EXPECT_EQ(kind(declared(DType::kI8, true), true), Kind::kNotAsked);  // no such grid here
  head.sinks = {1.0f};
  EXPECT_EQ(kind(known, true), Kind::kNone);
}

// Every format, subnormal numbers and saturation included, in both builds.
TEST(AttentionRounded, PIsRoundedAsTheCodecDoes) {
  struct Format {
    DType type;
    RoundingGrid grid;
    int offset;
  };
  const Format formats[] = {{DType::kF16, {10, -14, 65504}, 0},
                            {DType::kBf16, {7, -126, dtype_max(DType::kBf16)}, 0},
                            {DType::kE4m3, {3, -6, 448}, 9},
                            {DType::kE5m2, {2, -14, 57344}, 0}};
  constexpr size_t kKeys = 4096;
  std::vector<double> x(kKeys), zero(kKeys, 0), centre(kKeys), radius(kKeys), error(kKeys);
  for (size_t i = 0; i < kKeys; ++i) x[i] = -0.0045 * static_cast<double>(i);
  for (const BlockOps* ops : {&kPortableOps, avx2_ops()}) {
    for (const Format& f : formats) {
      if (ops == nullptr) continue;
      const double scale = power_of_two(f.offset);
      ops->round_weights({.logits = x.data(),
                          .sizes = zero.data(),
                          .maximums = zero.data(),
                          .keys = kKeys,
                          .grid = f.grid,
                          .scale = scale,
                          .centre = centre.data(),
                          .radius = radius.data(),
                          .error = error.data()});
      for (size_t i = 0; i < kKeys; ++i) {
        const double p = exp_nonpositive(x[i]) * scale;
        ASSERT_EQ(centre[i] * scale, decode(f.type, encode_saturating(f.type, p)))
            << ops->name << " " << dtype_name(f.type) << " of " << p;
        ASSERT_EQ(radius[i], 0);
      }
    }
  }
}

TEST(AttentionRounded, PortableAndAvx2GiveTheSameBits) {
  if (avx2_ops() == nullptr) GTEST_SKIP() << "no AVX2 here";
  const auto bits = [](double x) { return std::bit_cast<uint64_t>(x); };
  HeadEstimator portable(kPortableOps), fast(*avx2_ops());
  for (TestHead& head : heads(DType::kF16)) {
    const HeadBlock& block = head.block();
    const Profile profile = declared(DType::kF16, true);
    const HeadEstimate& a = portable.run(block, profile, {.rounded = true});
    const HeadEstimate& b = fast.run(block, profile, {.rounded = true});
    for (size_t r = 0; r < block.rows.size(); ++r) {
      const RoundedEstimate &p = a.rows[r].rounded, &q = b.rows[r].rounded;
      ASSERT_EQ(p.kind, q.kind);
      for (uint32_t j = 0; j < block.shape.dim_v; ++j) {
        ASSERT_EQ(bits(p.output[j]), bits(q.output[j]));
        ASSERT_EQ(bits(p.bound_low[j]), bits(q.bound_low[j]));
      }
    }
  }
}

}  // namespace
}  // namespace kv::reference
