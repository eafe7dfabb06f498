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

// The other certificates are kept too: doubled keys, V rows exchanged, lost pages.
struct Kept {
  uint64_t asked = 0, certified = 0;
  void check(bool is_certified, RowDecider& decider, const KernelResult& wrong, uint64_t seed) {
    ++asked;
    if (!is_certified) return;
    ++certified;
    EXPECT_TRUE(rejects(decider, wrong)) << "seed " << seed;
  }
};

RowInputs with_key_twice(const RowInputs& in, size_t i) {
  RowInputs out = in;
  const auto copy = [i](std::vector<double>& from, size_t dim) {
    for (size_t c = 0; c < dim; ++c) from.push_back(from[i * dim + c]);
  };
  copy(out.keys, in.shape.dim_k);
  copy(out.values, in.shape.dim_v);
  for (auto* v : {&out.key_scales, &out.value_scales, &out.bias}) copy(*v, 1);
  out.slots.push_back(in.slots.back() + 1);
  ++out.span;
  return out;
}

RowInputs with_values_swapped(const RowInputs& in, size_t i) {
  RowInputs out = in;
  const size_t j = (i + 1) % in.count(), d = in.shape.dim_v;
  for (size_t c = 0; c < d; ++c) std::swap(out.values[i * d + c], out.values[j * d + c]);
  std::swap(out.value_scales[i], out.value_scales[j]);
  return out;
}

RowInputs without_page(TestHead& head, uint64_t page) {
  const std::vector<uint8_t> before = head.visible[0];
  for (size_t s = 0; s < before.size(); ++s) {
    if (s / 16 == page) head.visible[0][s] = 0;
  }
  RowInputs inputs = row_inputs(head.block(), 0);
  head.visible[0] = before;
  return inputs;
}

TEST(Coverage, CertifiedDoublesSwapsAndPagesAreRejected) {
  const uint64_t trials = std::getenv("KV_FULL") ? 10'000 : 200;
  Kept doubled, swapped, pages;
  for (uint64_t seed = 0; seed < trials; ++seed) {
    Draw draw(seed + 99'000);
    TestHead head = draw_head(draw, {.slots_max = 96});
    const KernelConfig kernel = draw_kernel(draw, head);
    const Profile profile =
        resolve_profile({.shape = shape_of(head.options.dtype, head.options.kv()),
                         .declared = declaration_of(kernel),
                         .arithmetic = kernel.architecture});
    const RowInputs inputs = row_inputs(head.block(), 0);
    if (inputs.count() < 2) continue;
    const RowCoverage c = row_coverage(inputs, profile, head.options.output_dtype);
    RowDecider decider(inputs, profile, head.options.output_dtype);
    const size_t i = draw.below(inputs.count());
    doubled.check(c.doubled[i], decider, run_kernel(with_key_twice(inputs, i), kernel, draw), seed);
    swapped.check(c.swapped[i], decider, run_kernel(with_values_swapped(inputs, i), kernel, draw),
                  seed);
    const auto lost =
        certified_pages(inputs, profile, head.options.output_dtype, {.page_slots = 16});
    const RowInputs rest = without_page(head, inputs.slots[0] / 16);
    if (rest.count() == 0) continue;
    pages.check(lost[0], decider, run_kernel(rest, kernel, draw), seed);
  }
  for (const Kept& kept : {doubled, swapped, pages}) {
    EXPECT_GT(kept.certified, kept.asked / 6);
    EXPECT_LT(kept.certified, kept.asked);
  }
}

TEST(Coverage, AnotherHeadIsApartAndTheSameIsNot) {
  TestHead one({.slots = 40}), other({.slots = 40, .seed = 2});
  other.query = one.query;
  const RowInputs a = row_inputs(one.block(), 0), b = row_inputs(other.block(), 0);
  EXPECT_TRUE(certified_apart(a, b, hopper(DType::kF16), DType::kF16));
  EXPECT_FALSE(certified_apart(a, a, hopper(DType::kF16), DType::kF16));
}

}  // namespace
}  // namespace kv::reference
