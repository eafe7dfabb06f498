// The double tier against MPFR, and its two builds against each other.
#include "reference/attention.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "reference/precise/numbers.h"
#include "reference/precise/row.h"
#include "reference/test_head.h"

namespace kv::reference {
namespace {

Profile generic() { return resolve_profile({}); }

std::vector<TestHead> varied_heads() {
  std::vector<TestHead> heads;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const DType dtypes[] = {DType::kF16, DType::kBf16, DType::kF32, DType::kE4m3, DType::kE5m2};
    TestHead head({.rows = 1 + static_cast<uint32_t>(seed % 7),
                   .slots = 1 + static_cast<uint32_t>(seed * 37 % 150),
                   .dim_k = static_cast<uint32_t>(seed % 3 == 0 ? 64 : 33 + seed),
                   .dim_v = static_cast<uint32_t>(seed % 4 == 0 ? 64 : 17 + seed),
                   .dtype = dtypes[seed % 5],
                   .softcap = seed % 6 == 1 ? 5.0f : 0.0f,
                   .seed = seed,
                   .query_size = seed % 5 == 2 ? 30.0 : 1.0});
    if (seed % 4 == 1) head.slopes.assign(head.options.rows, 0.125f);
    if (seed % 4 == 2) head.sinks.assign(head.options.rows, 1.5f);
    if (seed % 6 == 3) {
      for (uint32_t s = 0; s < head.options.slots; ++s) {
        head.key_scales.push_back(0.5f + 0.01f * s);
        head.value_scales.push_back(1.5f - 0.003f * s);
      }
    }
    for (uint32_t r = 0; r < head.options.rows; ++r) {
      for (uint32_t s = 0; s < head.options.slots; ++s) head.visible[r][s] = (s + r) % 5 != 3;
    }
    heads.push_back(std::move(head));
  }
  return heads;
}

std::vector<uint32_t> all_columns(uint32_t count) {
  std::vector<uint32_t> columns(count);
  for (uint32_t j = 0; j < count; ++j) columns[j] = j;
  return columns;
}

TEST(Attention, OwnErrorCoversTheDistanceToMpfr) {
  double worst = 0, worst_lse = 0;
  HeadEstimator estimator;
  for (TestHead& head : varied_heads()) {
    const HeadBlock& block = head.block();
    const HeadEstimate& estimate = estimator.run(block, generic());
    for (size_t r = 0; r < block.rows.size(); ++r) {
      const RowEstimate& row = estimate.rows[r];
      if (row.empty()) continue;
      const auto truth = precise_row<Mpfr256>(row_inputs(block, r), generic(),
                                              {.columns = all_columns(block.shape.dim_v)});
      for (uint32_t j = 0; j < block.shape.dim_v; ++j) {
        const double error =
            to_double_up(absolute(Mpfr256(truth.columns[j].value - row.output[j])));
        ASSERT_LE(error, row.own_error[j]) << "seed " << head.options.seed << " column " << j;
        if (row.own_error[j] > 0) worst = std::max(worst, error / row.own_error[j]);
      }
      const double error = to_double_up(absolute(Mpfr256(truth.lse.value - row.lse)));
      ASSERT_LE(error, row.lse_own_error);
      worst_lse = std::max(worst_lse, error / row.lse_own_error);
    }
  }
  RecordProperty("largest_error_over_bound", std::to_string(worst));
  RecordProperty("largest_lse_error_over_bound", std::to_string(worst_lse));
  EXPECT_GT(worst, 0);
}

TEST(Attention, LowBoundNeverExceedsTheFullBound) {
  HeadEstimator estimator;
  for (TestHead& head : varied_heads()) {
    const HeadBlock& block = head.block();
    for (const char* arithmetic : {"generic", "hopper"}) {
      for (bool rounded_sum : {false, true}) {
        Declaration declared{.tile_slots = rounded_sum ? 64u : 0u,
                             .row_sum_of_rounded = rounded_sum};
        const Profile profile = resolve_profile({.shape = shape_of(block.shape.kv_dtype),
                                                 .declared = declared,
                                                 .arithmetic = arithmetic});
        const HeadEstimate& estimate = estimator.run(block, profile);
        for (size_t r = 0; r < block.rows.size(); ++r) {
          const RowEstimate& row = estimate.rows[r];
          if (row.empty()) continue;
          const auto full = precise_row<Mpfr256>(row_inputs(block, r), profile,
                                                 {.columns = all_columns(block.shape.dim_v)});
          // The quick test for vacuous rows may only err towards looking closer.
          ASSERT_TRUE(row.vacuous || !full.vacuous);
          for (uint32_t j = 0; j < block.shape.dim_v; ++j) {
            ASSERT_LE(row.bound_low[j], to_double_up(full.columns[j].bound));
          }
          ASSERT_LE(row.lse_bound_low, to_double_up(full.lse.bound));
        }
      }
    }
  }
}

uint64_t bits(double x) { return std::bit_cast<uint64_t>(x); }

TEST(Attention, PortableAndAvx2GiveTheSameBits) {
  if (avx2_ops() == nullptr) GTEST_SKIP() << "no AVX2 here";
  HeadEstimator portable(kPortableOps), fast(*avx2_ops());
  for (TestHead& head : varied_heads()) {
    const HeadBlock& block = head.block();
    const HeadEstimate& a = portable.run(block, generic());
    const HeadEstimate& b = fast.run(block, generic());
    for (size_t r = 0; r < block.rows.size(); ++r) {
      ASSERT_EQ(bits(a.rows[r].lse), bits(b.rows[r].lse));
      for (uint32_t j = 0; j < block.shape.dim_v && !a.rows[r].empty(); ++j) {
        ASSERT_EQ(bits(a.rows[r].output[j]), bits(b.rows[r].output[j]));
        ASSERT_EQ(bits(a.rows[r].bound_low[j]), bits(b.rows[r].bound_low[j]));
        ASSERT_EQ(bits(a.rows[r].own_error[j]), bits(b.rows[r].own_error[j]));
      }
    }
  }
}

TEST(Attention, ARowAloneHasTheBitsItHasInCompany) {
  TestHead many({.rows = 7, .slots = 133, .dim_k = 64, .dim_v = 72});
  HeadEstimator estimator;
  const HeadBlock& block = many.block();
  std::vector<std::vector<double>> together;
  const HeadEstimate& estimate = estimator.run(block, generic());
  for (const RowEstimate& row : estimate.rows) together.emplace_back(row.output, row.output + 72);
  for (size_t r = 0; r < 7; ++r) {
    HeadBlock alone = block;
    alone.rows = block.rows.subspan(r, 1);
    const RowEstimate& row = estimator.run(alone, generic()).rows[0];
    for (size_t j = 0; j < 72; ++j) ASSERT_EQ(bits(row.output[j]), bits(together[r][j]));
  }
}

TEST(Attention, EmptyRowsAreEmpty) {
  TestHead head({.rows = 2, .slots = 8});
  std::fill(head.visible[1].begin(), head.visible[1].end(), uint8_t{0});
  HeadEstimator estimator;
  const HeadEstimate& estimate = estimator.run(head.block(), generic());
  EXPECT_FALSE(estimate.rows[0].empty());
  EXPECT_TRUE(estimate.rows[1].empty());
  EXPECT_EQ(estimate.rows[1].lse, -HUGE_VAL);
}

TEST(Attention, HiddenNanDoesNotReachAResult) {
  TestHead head({.rows = 2, .slots = 8});
  head.key[3 * 32] = std::nan("");
  head.value[3 * 32 + 1] = HUGE_VAL;
  head.visible[0][3] = 0;
  HeadEstimator estimator;
  const HeadEstimate& estimate = estimator.run(head.block(), generic());
  EXPECT_TRUE(estimate.rows[0].finite);
  EXPECT_FALSE(estimate.rows[1].finite);
  for (uint32_t j = 0; j < 32; ++j) EXPECT_TRUE(std::isfinite(estimate.rows[0].output[j]));
}

TEST(Attention, OneKeyGivesItsValue) {
  TestHead head({.rows = 1, .slots = 1});
  HeadEstimator estimator;
  const HeadEstimate& estimate = estimator.run(head.block(), generic());
  for (uint32_t j = 0; j < 32; ++j) EXPECT_EQ(estimate.rows[0].output[j], head.value[j]);
}

TEST(Attention, SinkTakesItsShare) {
  TestHead head({.rows = 1, .slots = 1, .query_size = 0});
  head.sinks = {0.0f};
  HeadEstimator estimator;
  const HeadEstimate& estimate = estimator.run(head.block(), generic());
  for (uint32_t j = 0; j < 32; ++j) EXPECT_EQ(estimate.rows[0].output[j], head.value[j] / 2);
}

TEST(Attention, AlibiPrefersTheNearerKey) {
  // Two keys with equal scores, slope ln 2: the nearer one weighs twice as much.
  TestHead head({.rows = 1, .slots = 2, .query_size = 0});
  head.slopes = {0.693147182f};
  for (uint32_t j = 0; j < 32; ++j) {
    head.value[j] = 0;
    head.value[32 + j] = 3;
  }
  HeadEstimator estimator;
  const HeadEstimate& estimate = estimator.run(head.block(), generic());
  EXPECT_NEAR(estimate.rows[0].output[0], 2.0, 1e-7);
}

TEST(Attention, SoftcapSaturates) {
  TestHead head({.rows = 1, .slots = 2, .softcap = 1.0f});
  for (uint32_t c = 0; c < 32; ++c) {
    head.query[c] = 16;
    head.key[c] = 16;
    head.key[32 + c] = -16;
    head.value[c] = 1;
    head.value[32 + c] = 0;
  }
  HeadEstimator estimator;
  const HeadEstimate& estimate = estimator.run(head.block(), generic());
  const double weight = std::exp(-2.0);  // logits +1 and -1
  EXPECT_NEAR(estimate.rows[0].output[0], 1 / (1 + weight), 1e-14);
}

// Every code of every 16-bit format and of the 8-bit ones, in both builds, against the one codec.
TEST(Attention, BothBuildsDecodeEveryCode) {
  const BlockOps* builds[] = {&kPortableOps, avx2_ops()};
  for (DType type : {DType::kF16, DType::kBf16, DType::kE4m3, DType::kE5m2, DType::kI8}) {
    const uint32_t bytes = dtype_bytes(type), codes = 1u << 8 * bytes;
    std::vector<std::byte> bits(size_t{codes} * bytes);
    for (uint32_t code = 0; code < codes; ++code) std::memcpy(&bits[code * bytes], &code, bytes);
    for (const BlockOps* ops : builds) {
      if (ops == nullptr) continue;
      std::vector<double> out(codes);
      const std::byte* row = bits.data();
      double square = 0, largest = 0;
      ops->decode({.dtype = type,
                   .rows = &row,
                   .count = 1,
                   .dim = codes,
                   .stride = codes,
                   .out = out.data(),
                   .square = &square,
                   .largest = &largest});
      EXPECT_EQ(largest, type == DType::kI8 ? 128 : HUGE_VAL) << ops->name;
      for (uint32_t code = 0; code < codes; ++code) {
        const double want = decode(type, code);
        const bool same = std::isnan(want)
                              ? std::isnan(out[code])
                              : std::bit_cast<uint64_t>(want) == std::bit_cast<uint64_t>(out[code]);
        ASSERT_TRUE(same) << ops->name << " " << dtype_name(type) << " code " << code;
      }
    }
  }
}

}  // namespace
}  // namespace kv::reference
