// Coverage is told before a case runs, and agrees with what the judge measures afterwards.
#include "harness/judge/case_coverage.h"

#include <gtest/gtest.h>

#include "harness/judge/judge_fixture.h"

namespace kv {
namespace {

CoverageOptions fake_profile() {
  CoverageOptions options;
  options.declared = fake_observation(small_case()).ops.back().profile;
  return options;
}

TEST(CaseCoverage, ShortRowsAreCertifiedInFull) {
  const CaseCoverage c = case_coverage(small_case(), fake_profile()).value();
  EXPECT_TRUE(c.complete());
  EXPECT_GT(c.heads.size(), 2u);
  for (const HeadCoverage& h : c.heads) {
    EXPECT_EQ(h.dropped.certified, h.dropped.possible);
    EXPECT_GT(h.pages.possible, 0u);
    EXPECT_TRUE(h.uncertified_slots.empty());
  }
  const Verdict v = judge(small_case());
  EXPECT_EQ(v.stats.rows_judged, c.rows);
}

TEST(CaseCoverage, EqualValuesHideWhatTheyHide) {
  Case c = small_case();
  c.data.design = Design::kConstantValue;
  const CaseCoverage constant = case_coverage(c, fake_profile()).value();
  uint64_t swapped = 0, dropped = 0;
  for (const HeadCoverage& h : constant.heads) {
    swapped += h.swapped.certified;
    dropped += h.dropped.certified;
  }
  EXPECT_EQ(swapped, 0u) << "V rows are equal: nobody can tell them apart";
  EXPECT_GT(dropped, 0u) << "the LSE tells";
}

TEST(CaseCoverage, WorkHasALimitAndSaysSo) {
  CoverageOptions options = fake_profile();
  options.work = 2000;
  const CaseCoverage c = case_coverage(small_case(), options).value();
  EXPECT_GT(c.rows_left_out, 0u);
  EXPECT_FALSE(c.complete());
  EXPECT_NE(coverage_text(c).find("left out"), std::string::npos);
}

}  // namespace
}  // namespace kv
