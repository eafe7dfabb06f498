#include "reference/profile.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/bounds.h"
#include "reference/test_head.h"

namespace kv::reference {
namespace {

// The last column of the table in docs/numerics.md §1.2, in units of 2^-24 for each product.
TEST(Profile, StepErrorsOfTheTable) {
  const auto units = [](const Accumulation& a) { return step_error(a) / a.products * 0x1p24; };
  EXPECT_NEAR(units(kHopper16), 0.656, 0.001);
  EXPECT_NEAR(units(kBlackwell8), 0.578, 0.001);
  EXPECT_NEAR(units(kAmpere16), 1.375, 0.001);
  EXPECT_NEAR(units(kVolta16), 3.0, 0.001);
  EXPECT_NEAR(units(kFmaChain), 1.0, 0.001);
  EXPECT_NEAR(units(kHopper8), 2176, 10);
}

TEST(Profile, GenericIsNeverStricterThanAnArchitecture) {
  const auto per_product = [](const Accumulation& a) { return step_error(a) / a.products; };
  const Architecture& generic = architectures().front();
  for (const Architecture& a : architectures()) {
    EXPECT_LE(per_product(a.mma16), per_product(generic.mma16)) << a.name;
    EXPECT_LE(per_product(a.mma8), per_product(generic.mma8)) << a.name;
  }
}

TEST(Profile, NothingDeclaredIsTakenAtItsWorst) {
  const Profile p = resolve_profile({.shape = shape_of(DType::kBf16)});
  EXPECT_EQ(p.probability_dtype, DType::kBf16);
  EXPECT_TRUE(p.probability_normalised);
  EXPECT_EQ(p.row_sum, RowSum::kUnknown);
  EXPECT_EQ(p.tile_slots, 1u);
  EXPECT_EQ(p.values, kVolta16);
}

TEST(Profile, DeclaredFp32KernelHasNoProbabilityRounding) {
  const Profile p = resolve_profile({.declared = {.tile_slots = 32,
                                                  .accumulate = Declaration::Accumulate::kFma,
                                                  .probability_declared = true,
                                                  .probability_dtype = DType::kF32}});
  EXPECT_FALSE(p.probability_rounded);
  EXPECT_EQ(p.values, kFmaChain);
  EXPECT_EQ(p.row_sum, RowSum::kOfFp32);
  EXPECT_EQ(coefficients(p, {.dim_k = 64, .keys = 10, .span = 10}).probability_relative, 0);
}

TEST(Profile, TooMuchPermittedIsInfinite) {
  EXPECT_EQ(expm1_bound(1.5), HUGE_VAL);
  EXPECT_EQ(gamma32(0x1p24), HUGE_VAL);
  const Profile p = resolve_profile({.shape = shape_of(DType::kE4m3)});
  // The 13-bit accumulator over 65536 keys.
  EXPECT_EQ(coefficients(p, {.dim_k = 64, .keys = 65536, .span = 65536}).accumulation, HUGE_VAL);
}

// Visible keys that are far apart cannot share a fused step: the error grows with the hull.
TEST(Profile, HolesCostSteps) {
  Profile p = resolve_profile({.declared = {.tile_slots = 64}, .arithmetic = "hopper"});
  const double dense = coefficients(p, {.dim_k = 64, .keys = 64, .span = 64}).accumulation;
  const double sparse = coefficients(p, {.dim_k = 64, .keys = 64, .span = 1024}).accumulation;
  EXPECT_GT(sparse, 4 * dense);
}

TEST(Profile, NamesSayWhatIsAssumed) {
  const Profile p = resolve_profile({.declared = {.tile_slots = 64}, .arithmetic = "hopper"});
  EXPECT_EQ(p.name, "Hopper/Blackwell mma (hopper), P rounded to f16, tiles of at least 64");
}

}  // namespace
}  // namespace kv::reference
