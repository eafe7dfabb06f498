// No bound may reject a conforming kernel. Thousands of kernels, correct by construction and drawn
// at random, are judged under what they declare and under nothing declared at all.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "reference/attention.h"
#include "reference/decide.h"
#include "reference/soundness/drawn_head.h"
#include "reference/soundness/fused_step.h"

namespace kv::reference {
namespace {

struct Tally {
  uint64_t rows = 0, vacuous = 0, elements = 0, rejected = 0, rejected_lse = 0, missed = 0;
  uint64_t by_basis[3] = {0, 0, 0};
  double ratio[3] = {0, 0, 0}, ratio_lse = 0;
};

std::string describe(const TestHead& head, const KernelConfig& k, const Profile& profile) {
  return std::string(dtype_name(head.options.dtype)) + " kv " +
         std::string(dtype_name(head.options.kv())) + " rotated " +
         std::to_string(head.rotated.size()) + " slots " + std::to_string(head.options.slots) +
         " dim " + std::to_string(head.options.dim_k) + " tile " + std::to_string(k.tile_slots) +
         " splits " + std::to_string(k.splits) + " unfused " + std::to_string(k.unfused) +
         " lazy " + std::to_string(k.lazy_rescale) + " softcap " +
         std::to_string(head.options.softcap) + " scales " +
         std::to_string(head.key_scales.size()) + " sinks " + std::to_string(head.sinks.size()) +
         " slopes " + std::to_string(head.slopes.size()) + "\n  " + profile.name;
}

void note(double& worst, const Answer& a, double got, DType type) {
  if (!(a.bound > 0) || std::fabs(got - a.want) <= worst * a.bound) return;
  worst = std::max(worst, error_bound_ratio(a.want, a.bound, got, type));
}

class Campaign {
 public:
  Tally tally;

  void judge(TestHead& head, const KernelConfig& kernel, Draw& draw) {
    const HeadBlock& block = head.block();
    for (bool declared : {true, false}) {
      ProfileRequest request{.shape = shape_of(head.options.dtype, head.options.kv())};
      if (declared) {
        request.declared = declaration_of(kernel);
        request.arithmetic = kernel.architecture;
      } else if (kernel.splits > 1) {
        request.declared.splits = kernel.splits;  // planned by the harness: always known
      }
      profiles_[declared] = resolve_profile(request);
    }
    for (size_t r = 0; r < block.rows.size(); ++r) {
      const RowInputs inputs = row_inputs(block, r);
      if (inputs.count() == 0) continue;
      const KernelResult result = run_kernel(inputs, kernel, draw);
      for (const Profile& profile : profiles_) judge_row(head, kernel, r, inputs, result, profile);
    }
  }

 private:
  void judge_row(TestHead& head, const KernelConfig& kernel, size_t r, const RowInputs& inputs,
                 const KernelResult& result, const Profile& profile) {
    const DType type = head.options.output_dtype;
    RowDecider decider(inputs, profile, type);
    HeadBlock alone = head.block();
    alone.rows = alone.rows.subspan(r, 1);
    const RowEstimate& fast = estimator_.run(alone, profile).rows[0];
    ++tally.rows;
    const Answer lse = decider.ask({.got = result.lse});
    tally.vacuous += lse.vacuous;
    if (lse.vacuous) return;
    for (uint32_t j = 0; j < inputs.shape.dim_v; ++j) {
      const double got = result.output[j];
      const Answer a = decider.ask({.column = j, .got = got});
      ++tally.elements;
      const FastElement element{fast.output[j], fast.bound_low[j], fast.own_error[j], got};
      const bool sure = surely_conforms(element, type).conforms;
      tally.missed += sure && a.decision != Decision::kConforms;
      take(a, got, head, kernel, profile);
      const Answer b = decider.ask({.column = j, .got = got}, Basis::kProbability);
      const bool other_centre = fast.dyadic || rounding_is_known(profile);
      tally.missed += sure && !other_centre && b.decision != Decision::kConforms;
      tally.missed += !fast.dyadic && !rounding_is_known(profile) && b.basis == Basis::kProbability;
      if (b.basis != Basis::kBlackBox) take(b, got, head, kernel, profile);
    }
    note(tally.ratio_lse, lse, result.lse, DType::kF32);
    if (lse.decision == Decision::kConforms || tally.rejected_lse++ >= 5) return;
    ADD_FAILURE() << "LSE: got " << result.lse << " want " << lse.want << " bound " << lse.bound
                  << "\n  " << describe(head, kernel, profile);
  }

  void take(const Answer& a, double got, const TestHead& head, const KernelConfig& kernel,
            const Profile& profile) {
    const int basis = static_cast<int>(a.basis);
    ++tally.by_basis[basis];
    note(tally.ratio[basis], a, got, head.options.output_dtype);
    if (a.decision == Decision::kConforms || tally.rejected++ >= 5) return;
    ADD_FAILURE() << "B" << basis << ": got " << got << " want " << a.want << " bound " << a.bound
                  << "\n  " << describe(head, kernel, profile);
  }

  Profile profiles_[2];
  HeadEstimator estimator_;
};

TEST(Soundness, NoConformingKernelIsRejected) {
  const bool full = std::getenv("KV_FULL") != nullptr;
  const uint64_t wanted = full ? 30'000'000 : 600'000;
  Campaign campaign;
  Tally& t = campaign.tally;
  for (uint64_t seed = full ? 1'000'000 : 1; t.elements < wanted; ++seed) {
    Draw draw(seed);
    TestHead head = draw_head(draw, {.slots_max = draw.one_in(50) ? 2048u : 256u});
    const KernelConfig kernel = draw_kernel(draw, head);
    campaign.judge(head, kernel, draw);
  }
  std::printf(
      "rows %lu (%lu vacuous), elements %lu, rejected %lu, LSE rejected %lu; largest "
      "error/bound (elements): B0 %.3f (%lu), B1 %.3f (%lu), B2 %.3f (%lu), LSE %.3f\n",
      t.rows, t.vacuous, t.elements, t.rejected, t.rejected_lse, t.ratio[0], t.by_basis[0],
      t.ratio[1], t.by_basis[1], t.ratio[2], t.by_basis[2], t.ratio_lse);
  EXPECT_EQ(t.rejected, 0u);
  EXPECT_EQ(t.rejected_lse, 0u);
  EXPECT_EQ(t.missed, 0u) << "the fast tier accepted what the full bound rejects";
  EXPECT_LT(t.vacuous, t.rows / 4);
  for (double ratio : t.ratio) {
    EXPECT_GT(ratio, 0.5) << "a bound that nobody comes near is too weak, or the kernels too kind";
  }
}

/// One query of two dimensions that sees `slots` keys, V alike in all columns.
struct OneRow {
  OneRow(DType type, DType kv_type, DType output, uint32_t slots)
      : head({.slots = slots,
              .dim_k = 16,
              .dim_v = 8,
              .dtype = type,
              .output_dtype = output,
              .scale = 1.0f,
              .kv_dtype = kv_type}) {
    for (auto* tensor : {&head.query, &head.key, &head.value}) {
      std::fill(tensor->begin(), tensor->end(), 0.0);
    }
  }
  void set_value(uint32_t key, double v) { std::fill_n(head.value.begin() + key * 8, 8, v); }
  /// What the kernel returns is accepted under every basis.
  void expect_accepted(const KernelConfig& kernel, Profile profile) {
    Draw draw(1);
    const RowInputs inputs = row_inputs(head.block(), 0);
    const KernelResult result = run_kernel(inputs, kernel, draw);
    RowDecider decider(inputs, profile, head.options.output_dtype);
    for (const Basis basis : {Basis::kBlackBox, Basis::kProbability}) {
      const Answer a = decider.ask({.column = 0, .got = result.output[0]}, basis);
      EXPECT_EQ(a.decision, Decision::kConforms)
          << "got " << result.output[0] << " want " << a.want << " bound " << a.bound;
      EXPECT_FALSE(a.vacuous);
    }
  }
  TestHead head;
};

// P of most keys is rounded up to its smallest subnormal, to 4/3 of itself: a coarse accumulator
// aligns to what P has become.
TEST(Soundness, ProbabilitiesRoundedUpToTheQuantumWeighInTheAccumulator) {
  for (const DType output : {DType::kBf16, DType::kF32}) {
    for (const uint32_t slots : {256u, 640u, 896u}) {
      OneRow row(DType::kF16, DType::kE4m3, output, slots);
      row.head.query[0] = 6.9296875;
      row.head.query[1] = 5.8359375;
      for (uint32_t i = 1; i < slots; ++i) {
        row.head.key[i * 16 + (i == 1 ? 0 : 1)] = -1;
        row.set_value(i, i == 1 ? 256 : -15 * 0x1p-9);
      }
      KernelConfig kernel{.scores = kHopper16, .values = kHopper8};
      kernel.probability_dtype = DType::kE4m3;
      ProfileRequest request{.shape = shape_of(DType::kF16, DType::kE4m3),
                             .declared = declaration_of(kernel),
                             .arithmetic = "hopper"};
      request.shape.output_dtype = output;
      row.expect_accepted(kernel, resolve_profile(request));
    }
  }
}

// Products of subnormal numbers, aligned as if these were normal: in each step one product of 2^-9
// is aligned as 2^1, and the seven beside it are lost.
TEST(Soundness, SubnormalOperandsAreAlignedByTheirStoredExponent) {
  TestHead head({.slots = 8, .dim_k = 128, .dim_v = 8, .scale = 1.0f});
  std::fill(head.query.begin(), head.query.end(), 0x1p-24);
  for (size_t i = 0; i < head.key.size(); ++i) head.key[i] = i % 8 == 0 ? 32768 : 2 - 0x1p-9;
  KernelConfig kernel{.scores = kAmpere16, .values = kAmpere16, .architecture = "ampere"};
  kernel.stored_exponents = true;
  const Profile profile = resolve_profile(
      {.shape = shape_of(DType::kF16), .declared = declaration_of(kernel), .arithmetic = "ampere"});
  const RowInputs inputs = row_inputs(head.block(), 0);
  Draw draw(1);
  const KernelResult result = run_kernel(inputs, kernel, draw);
  RowDecider decider(inputs, profile, DType::kF16);
  const Answer lse = decider.ask({.got = result.lse});
  EXPECT_EQ(lse.decision, Decision::kConforms)
      << "got " << result.lse << " want " << lse.want << " bound " << lse.bound;
  // The twin is off by more than any alignment.
  const Answer wrong = decider.ask({.got = result.lse + 1e-3f});
  EXPECT_EQ(wrong.decision, Decision::kViolates) << lse.bound;
}

// A key that weighs next to nothing, with a value so large that what is left of it is cut off a sum
// that would be exact without it: no certificate of exactness.
TEST(Soundness, ANegligibleKeyOfAHugeValueTakesTheCertificate) {
  OneRow row(DType::kBf16, DType::kBf16, DType::kBf16, 48);
  row.head.query[0] = 1;
  row.head.key[16] = -45;
  row.set_value(0, 0x1p-10);
  row.set_value(1, -0x1p36);
  row.set_value(16, 2000);
  row.set_value(32, -2000);
  KernelConfig kernel;
  kernel.probability_dtype = DType::kBf16;
  row.expect_accepted(kernel, resolve_profile({.shape = shape_of(DType::kBf16),
                                               .declared = declaration_of(kernel),
                                               .arithmetic = "hopper"}));
}

// The only key that a row sees stands at the query's own place: ALiBi has nothing to say, and the
// double tier must leave the row to the full bound, which takes its weight for a power of two.
TEST(Soundness, ALiBiWithoutABiasIsNoReasonToAskForLess) {
  const KernelConfig kernel;
  const Profile profile =
      resolve_profile({.declared = declaration_of(kernel), .arithmetic = kernel.architecture});
  HeadEstimator estimator;
  const auto is_left = [&](uint32_t slots) {
    TestHead head({.slots = slots, .dim_k = 64});
    head.slopes = {0.3f};
    return estimator.run(head.block(), profile).rows[0].dyadic;
  };
  EXPECT_TRUE(is_left(1));
  EXPECT_FALSE(is_left(3));
}

// The simulation itself: a fused step loses what its model says it loses, and no more.
TEST(Soundness, FusedStepTruncates) {
  const double a[] = {1, 0x1p-13, 0x1p-13}, b[] = {1, 0x1p-12, 0x1p-13};
  const Products p{.a = a, .b = b, .count = 3};
  EXPECT_EQ(sum_of_products(kHopper16, 0, p), 1.0f);  // 2^-25 is kept inside, cut at the end
  EXPECT_EQ(sum_of_products(kFmaChain, 0, p), 1.0f);
  const double c[] = {-1, 0x1p-13}, d[] = {1, 0x1p-12};
  EXPECT_EQ(sum_of_products(kHopper16, 0, {.a = c, .b = d, .count = 2}),
            -1.0f + 0x1p-24f);  // towards zero
  const double e[] = {1, 0x1p-12}, f[] = {1, 0x1p-12};
  EXPECT_EQ(sum_of_products(kHopper8, 1, {.a = e, .b = f, .count = 2}), 2.0f);  // 13 bits
}

// The smallest subnormal number of fp16, and products that its exponent cuts.
TEST(Soundness, FusedStepAlignsSubnormalFactorsAsIfNormal) {
  const double a[] = {0x1p-24, 1}, b[] = {32768, 0x1p-24};
  Products p{.a = a, .b = b, .count = 2};
  EXPECT_EQ(sum_of_products(kAmpere16, 0, p), 0x1p-9f + 0x1p-24f);
  p.a_normal = p.b_normal = 0x1p-14;
  EXPECT_EQ(sum_of_products(kAmpere16, 0, p), 0x1p-9f);  // 2^(1 - 24) is the grid
}

// A campaign that could not reject anything would prove nothing: plant one fault.
TEST(Soundness, AFaultyKernelIsRejected) {
  Draw draw(3);
  TestHead head({.slots = 64, .dim_k = 64});
  const KernelConfig kernel;
  RowInputs all = row_inputs(head.block(), 0);
  head.visible[0][17] = 0;
  const KernelResult wrong = run_kernel(row_inputs(head.block(), 0), kernel, draw);
  const Profile profile =
      resolve_profile({.declared = declaration_of(kernel), .arithmetic = kernel.architecture});
  RowDecider decider(all, profile, DType::kF16);
  int rejected = 0;
  for (uint32_t j = 0; j < 32; ++j) {
    rejected += decider.ask({.column = j, .got = wrong.output[j]}).decision == Decision::kViolates;
  }
  EXPECT_GT(rejected, 16);
}

}  // namespace
}  // namespace kv::reference
