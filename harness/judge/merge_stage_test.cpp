// A cascade link by link: a wrong merge is told from wrong parts, and a correct one passes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "harness/judge/judge_fixture.h"

namespace kv {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr size_t kDims = 16, kPrefill = 2, kDecode = 3;  // operations of small_case()

/// Parts of four slots: of the prefill's rows most see nothing in the later ones.
Case cascade_case() {
  Case c = small_case();
  c.exec.cascade_slots = 4;
  return c;
}

CascadeResult& cascade_of(Observation& o, size_t op) { return o.ops[op].cascades.at(0); }

double output_of(const LayerResult& layer, size_t row, size_t dim) {
  uint16_t bits = 0;
  std::memcpy(&bits, &layer.output[(row * kDims + dim) * 2], 2);
  return decode(DType::kF16, bits);
}
void set_row(LayerResult& layer, size_t row, size_t dim, double value) {
  const auto bits = static_cast<uint16_t>(encode(DType::kF16, value));
  std::memcpy(&layer.output[(row * kDims + dim) * 2], &bits, 2);
}

/// The last row and head of the prefill, which several parts show something.
size_t last_row(const Observation& o) { return o.ops[kPrefill].layers[0].lse.size() - 1; }

TEST(MergeStage, ACorrectCascadePasses) {
  const Verdict plain = judge(small_case()), v = judge(cascade_case());
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
  EXPECT_GT(v.stats.elements_judged, 2 * plain.stats.elements_judged);
}

TEST(MergeStage, StatesAddedWithoutTheirWeights) {
  const Verdict v = judge(cascade_case(), at_end([](Observation& o) {
                            CascadeResult& c = cascade_of(o, kPrefill);
                            const size_t row = last_row(o);
                            for (size_t d = 0; d < kDims; ++d) {
                              double sum = 0, count = 0;
                              for (const LayerResult& part : c.parts) {
                                if (part.lse[row] == kMinusInfinity) continue;
                                sum += output_of(part, row, d);
                                ++count;
                              }
                              set_row(c.merged, row, d, sum / count);
                            }
                          }));
  EXPECT_FAILS(v, Stage::kInterval, "merge-output");
  EXPECT_EQ(v.divergence->tensor, "merged output");
  EXPECT_NE(v.message.find("Certified with MPFR"), std::string::npos) << v.message;
}

TEST(MergeStage, ALostStateInTheLse) {
  const Verdict v = judge(cascade_case(), at_end([](Observation& o) {
                            CascadeResult& c = cascade_of(o, kPrefill);
                            c.merged.lse[last_row(o)] = c.parts[0].lse[last_row(o)];
                          }));
  EXPECT_FAILS(v, Stage::kInterval, "merge-lse");
}

TEST(MergeStage, AnLseOfTheOtherBaseIsNamed) {
  const Verdict v = judge(cascade_case(), at_end([](Observation& o) {
                            float& lse = cascade_of(o, kPrefill).merged.lse[last_row(o)];
                            lse = static_cast<float>(lse * 1.4426950408889634);
                          }));
  EXPECT_FAILS(v, Stage::kInterval, "merge-lse-base");
}

TEST(MergeStage, NanOfEmptyStates) {
  const Verdict v =
      judge(cascade_case(),
            at_end([](Observation& o) { cascade_of(o, kPrefill).merged.lse[0] = std::nanf("1"); }));
  EXPECT_FAILS(v, Stage::kContract, "merge-lse-nan");
}

TEST(MergeStage, AWrongPartIsNoWrongMerge) {
  const Verdict v = judge(cascade_case(), at_end([](Observation& o) {
                            LayerResult& part = cascade_of(o, kDecode).parts[1];
                            set_row(part, 4, 3, output_of(part, 4, 3) + 0.5);
                          }));
  EXPECT_EQ(v.outcome, Outcome::kFail) << v.message;
  EXPECT_EQ(v.failure_class, "output-value") << v.message;
  EXPECT_NE(v.message.find("In part 1 of a cascade"), std::string::npos) << v.message;
  ASSERT_TRUE(v.divergence);
  EXPECT_EQ(v.divergence->tensor, "part output");  // the step's own output is right
}

TEST(MergeStage, AnEmptyPartMustSaySo) {
  const Verdict v = judge(
      cascade_case(), at_end([](Observation& o) { cascade_of(o, kPrefill).parts[1].lse[0] = 0; }));
  EXPECT_FAILS(v, Stage::kContract, "empty-row-lse");
}

// A V that overflows makes what a conforming part says arbitrary: no merge of it can be wrong.
TEST(MergeStage, StatesThatSayNothingAreNotMerged) {
  Case c = cascade_case();
  c.data.overrides = {
      {.tensor = 2, .request = RequestId(1), .slot = 1, .head = 1, .dim = 3, .value = 1e30}};
  const Verdict v = judge(c, at_end([](Observation& o) {
                            set_row(cascade_of(o, kPrefill).merged, last_row(o), 3, std::nan(""));
                          }));
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
  EXPECT_GT(v.stats.merges_vacuous, 0u);
}

TEST(MergeStage, AbsentOrMisshapenCascadesAreNoPass) {
  const Verdict absent =
      judge(cascade_case(), at_end([](Observation& o) { o.ops[kPrefill].cascades.clear(); }));
  EXPECT_EQ(absent.outcome, Outcome::kError) << absent.message;
  const Verdict shorter =
      judge(cascade_case(),
            at_end([](Observation& o) { cascade_of(o, kDecode).parts[0].lse.pop_back(); }));
  EXPECT_EQ(shorter.outcome, Outcome::kError) << shorter.message;
}

}  // namespace
}  // namespace kv
