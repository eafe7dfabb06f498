// A certificate is kept: kernels that lose a certified key are rejected, whatever their rounding.
#include "reference/coverage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "reference/decide.h"
#include "reference/soundness/drawn_head.h"

namespace kv::reference {
namespace {

Profile hopper(DType type) {
  return resolve_profile({.shape = shape_of(type),
                          .declared = {.tile_slots = 64,
                                       .accumulate = Declaration::Accumulate::kMma,
                                       .probability_declared = true,
                                       .probability_dtype = type},
                          .arithmetic = "hopper"});
}

RowCoverage coverage_of(TestHead& head, const Profile& profile) {
  return certified_keys(row_inputs(head.block(), 0), profile, head.options.output_dtype);
}

TEST(Coverage, AllKeysOfAShortRowAreCertified) {
  TestHead head({.slots = 128, .dim_k = 64, .dim_v = 64, .scale = 0.125f});
  const RowCoverage c = coverage_of(head, hopper(DType::kF16));
  EXPECT_EQ(c.count(), 128u);
  EXPECT_EQ(c.uncertified_weight_max, 0);
}

TEST(Coverage, LongRowsOfRandomKeysAreNot) {
  TestHead head({.slots = 4096, .dim_k = 64, .dim_v = 16, .dtype = DType::kBf16, .scale = 0.125f});
  const RowCoverage c = coverage_of(head, hopper(DType::kBf16));
  EXPECT_LT(c.count(), 2048u);
  EXPECT_GT(c.uncertified_weight_max, 0);
}

TEST(Coverage, UniformScoresCertifyEveryKeyOfALongRow) {
  TestHead head({.slots = 4096,
                 .dim_k = 16,
                 .dim_v = 16,
                 .dtype = DType::kBf16,
                 .output_dtype = DType::kBf16,
                 .query_size = 0});
  // Zero-sum small integers: one lost key is not drowned by the others.
  for (uint32_t i = 0; i < 4096; ++i) {
    for (uint32_t j = 0; j < 16; ++j) head.value[i * 16 + j] = i % 2 ? -3 : 3;
  }
  const RowCoverage c = coverage_of(head, hopper(DType::kBf16));
  EXPECT_EQ(c.count(), 4096u);
}

TEST(Coverage, TheOnlyKeyIsCertified) {
  TestHead head({.slots = 1});
  EXPECT_EQ(coverage_of(head, hopper(DType::kF16)).count(), 1u);
}

TEST(Coverage, VacuousRowsCertifyNothing) {
  TestHead head({.slots = 8, .dim_k = 128, .scale = 1000.0f, .query_size = 30});
  const RowCoverage c = coverage_of(head, hopper(DType::kF16));
  EXPECT_EQ(c.count(), 0u);
  EXPECT_GT(c.uncertified_weight_max, 0.1);
}

bool rejects(RowDecider& decider, const KernelResult& result) {
  if (decider.ask({.got = result.lse}).decision == Decision::kViolates) return true;
  for (size_t j = 0; j < result.output.size(); ++j) {
    const Question q{.column = static_cast<int64_t>(j), .got = result.output[j]};
    if (decider.ask(q).decision == Decision::kViolates) return true;
  }
  return false;
}

// The row without one of its keys, as a kernel that loses it would see it.
RowInputs without_key(TestHead& head, uint64_t slot) {
  head.visible[0][slot] = 0;
  RowInputs inputs = row_inputs(head.block(), 0);
  head.visible[0][slot] = 1;
  return inputs;
}

TEST(Coverage, KernelsThatLoseACertifiedKeyAreRejected) {
  const uint64_t trials = std::getenv("KV_FULL") ? 20'000 : 300;
  uint64_t certified = 0, keys = 0;
  for (uint64_t seed = 0; seed < trials; ++seed) {
    Draw draw(seed + 77'000);
    TestHead head = draw_head(draw, {.slots_max = 96});
    const KernelConfig kernel = draw_kernel(draw, head);
    const Profile profile = resolve_profile({.shape = shape_of(head.options.dtype),
                                             .declared = declaration_of(kernel),
                                             .arithmetic = kernel.architecture});
    const RowInputs inputs = row_inputs(head.block(), 0);
    if (inputs.count() < 2) continue;
    const RowCoverage c = certified_keys(inputs, profile, head.options.output_dtype);
    RowDecider decider(inputs, profile, head.options.output_dtype);
    for (int k = 0; k < 6; ++k) {
      const size_t i = draw.below(inputs.count());
      ++keys;
      if (!c.certified[i]) continue;
      ++certified;
      const KernelResult wrong = run_kernel(without_key(head, inputs.slots[i]), kernel, draw);
      EXPECT_TRUE(rejects(decider, wrong))
          << "seed " << seed << " key " << i << " of " << inputs.count();
    }
  }
  EXPECT_GT(certified, keys / 4);
  EXPECT_LT(certified, keys);
}

}  // namespace
}  // namespace kv::reference
