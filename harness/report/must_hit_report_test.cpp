// A run that held the covering array and missed a condition is red and says which, and so is one
// that was mostly refused; a whole one, a short one and one whose plugin does not offer the rest
// are not.
#include "harness/report/must_hit_report.h"

#include <gtest/gtest.h>

#include "harness/gen/cover.h"

namespace kv {
namespace {

constexpr uint64_t kSeed = 1;

Case drawn(uint64_t number, const DrawOptions& options) {
  PhiloxSource choices(kSeed, number);
  return draw(choices, options);
}

struct Narrowed {
  bool (*is_kept)(const Case&);
  Outcome others = Outcome::kPass;  // not drawn when it is kPass
};

/// A run over the covering array of what is offered, of which only what is kept was judged.
RunSummary run(const Narrowed& narrowed, const OfferSet& offered = OfferSet::all()) {
  RunSummary summary(offered);
  summary.must_hit_is_due = true;
  const DrawOptions options = {.offered = offered};
  for (const uint64_t number : covering_array(kSeed, options)) {
    const Case c = drawn(number, options);
    Verdict verdict;
    verdict.outcome = narrowed.is_kept(c) ? Outcome::kPass : narrowed.others;
    if (narrowed.is_kept(c) || narrowed.others != Outcome::kPass) summary.add(c, verdict);
  }
  return summary;
}

bool all(const Case&) { return true; }
bool no_softcap(const Case& c) { return !features_of(c).has(feature("softcap")); }
bool one_layout(const Case& c) { return c.pool.layout == CacheLayout::kSlotHead; }
bool not_both(const Case& c) {
  const FeatureSet had = features_of(c);
  return !(had.has(feature("softcap")) && had.has(feature("sinks")));
}
bool has(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(MustHitReport, AWholeCampaignIsGreen) {
  const RunSummary summary = run({.is_kept = all});
  EXPECT_EQ(summary.exit_code(), ExitCode::kPass);
  EXPECT_EQ(must_hit_text(summary).find("never met"), std::string::npos);
  EXPECT_EQ(must_hit_json(summary)["met"], must_hit_json(summary)["required"]);
  EXPECT_NE(features_table(summary.features).find("softcap"), std::string::npos);
}

TEST(MustHitReport, AMissedConditionIsFive) {
  RunSummary summary = run({.is_kept = no_softcap});
  EXPECT_EQ(summary.exit_code(), ExitCode::kVacuous);
  EXPECT_TRUE(has(summary.never_met(), "softcap"));
  EXPECT_NE(must_hit_text(summary).find("never met   softcap:"), std::string::npos);
  EXPECT_NE(must_hit_text(summary).find("others; --json lists them"), std::string::npos);
  EXPECT_EQ(must_hit_json(summary)["conditions"]["softcap"], 0);
  summary.must_hit_is_due = false;  // a run too short for the array
  EXPECT_EQ(summary.exit_code(), ExitCode::kPass);
  EXPECT_EQ(must_hit_text(summary).find("never met"), std::string::npos);
}

TEST(MustHitReport, AMissedPairIsFive) {
  const RunSummary summary = run({.is_kept = not_both});
  EXPECT_EQ(summary.exit_code(), ExitCode::kVacuous);
  EXPECT_TRUE(has(summary.never_met(), "softcap + sinks"));
  EXPECT_FALSE(has(summary.never_met(), "softcap"));
}

// No plugin is asked beforehand about layouts.
TEST(MustHitReport, WhatThePluginRefusesIsToldAndIsNotMissed) {
  const RunSummary summary = run({.is_kept = one_layout, .others = Outcome::kUnsupported});
  EXPECT_EQ(summary.exit_code(), ExitCode::kPass);
  EXPECT_TRUE(summary.never_met().empty());
  EXPECT_NE(must_hit_text(summary).find("more were refused"), std::string::npos);
  const auto refused = must_hit_json(summary)["only_refused"].get<std::vector<std::string>>();
  EXPECT_TRUE(has(refused, "layout_head_slot"));
  EXPECT_FALSE(has(refused, "sinks"));
}

TEST(MustHitReport, WhatThePluginSaidItOffersMustHaveBeenJudged) {
  const RunSummary summary = run({.is_kept = no_softcap, .others = Outcome::kUnsupported});
  EXPECT_EQ(summary.exit_code(), ExitCode::kVacuous);
  EXPECT_EQ(summary.never_met(), std::vector<std::string>{"softcap"});
}

TEST(MustHitReport, WhatThePluginDoesNotOfferIsExcusedByName) {
  OfferSet offered;
  for (size_t i = 0; i < kFeatureCount; ++i)
    if (Feature(i) != feature("softcap")) offered.add(Feature(i));
  const RunSummary summary = run({.is_kept = all}, offered);
  EXPECT_EQ(summary.exit_code(), ExitCode::kPass);
  EXPECT_NE(must_hit_text(summary).find("not asked   softcap:"), std::string::npos);
  EXPECT_EQ(must_hit_json(summary)["not_offered"], nlohmann::json::array({"softcap"}));
}

TEST(MustHitReport, ARunThatWasMostlyRefusedIsFive) {
  RunSummary summary = run({.is_kept = all});
  Verdict refused;
  refused.outcome = Outcome::kUnsupported;
  const uint64_t judged = summary.judged();
  for (uint64_t i = 0; i < judged; ++i) summary.add(drawn(i, {}), refused);
  EXPECT_EQ(summary.exit_code(), ExitCode::kPass);
  summary.add(drawn(0, {}), refused);
  EXPECT_EQ(summary.exit_code(), ExitCode::kVacuous);
  EXPECT_NE(summary_text(summary).find("cases: this campaign says too little"), std::string::npos);
}

// A failure outweighs what was not met.
TEST(MustHitReport, AFailureIsStillOne) {
  EXPECT_EQ(run({.is_kept = no_softcap, .others = Outcome::kFail}).exit_code(), ExitCode::kFailed);
}

}  // namespace
}  // namespace kv
