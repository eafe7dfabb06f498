// The first drawn cases of a run that is long enough are the covering array, with the relations
// that a campaign adds, and no case comes twice.
#include "harness/cli/case_source.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/gen/must_hit.h"

namespace kv::cli {
namespace {

constexpr uint64_t kRunCases = 400;

TEST(CaseSource, ALongRunStartsWithTheCoveringArray) {
  CaseSource source(
      {.seed = 7, .drawn_max = kRunCases, .drawing = {.variants = {"prefill", "decode"}}});
  MustHit met;
  std::set<std::string> names;
  while (!source.covered()) {
    const auto sourced = source.next();
    ASSERT_TRUE(sourced.ok() && sourced->has_value());
    met.add(features_of((*sourced)->c));
    names.insert((*sourced)->c.name);
    EXPECT_EQ((*sourced)->c.exec.variant, "");
  }
  EXPECT_TRUE(met.missing().empty()) << met.missing().size() << ", " << met.missing()[0];
  EXPECT_LT(source.drawn(), kRunCases);
  for (auto sourced = source.next(); sourced->has_value(); sourced = source.next())
    names.insert((*sourced)->c.name);
  EXPECT_EQ(names.size(), kRunCases);
  EXPECT_TRUE(names.contains("seed 7 case 0"));
}

TEST(CaseSource, AShortRunDrawsFromTheFirst) {
  CaseSource source({.seed = 7, .drawn_max = 3});
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ((*source.next())->c.name, "seed 7 case " + std::to_string(i));
  EXPECT_FALSE(source.next()->has_value());
  EXPECT_FALSE(source.covered());
}

// A covering case whose verdict says nothing has covered nothing: others take its place.
TEST(CaseSource, WhatTheArrayHadInVainIsDrawnAgain) {
  CaseSource source({.seed = 1, .drawn_max = 350});
  MustHit met;
  std::set<std::string> names;
  const auto drain = [&](bool is_vacuous_for_hopper) {
    for (auto next = source.next(); next.ok() && *next; next = source.next()) {
      EXPECT_TRUE(names.insert((*next)->c.name).second) << (*next)->c.name << " a second time";
      const FeatureSet had = features_of((*next)->c);
      const bool vacuous = is_vacuous_for_hopper && had.has(feature("rounding_mma_hopper")) &&
                           had.has(feature("design_ascending"));
      if (!vacuous) met.add(had);
    }
  };
  drain(true);
  ASSERT_TRUE(source.covered());
  ASSERT_FALSE(met.missing().empty());
  const uint64_t before = source.drawn();
  EXPECT_GT(source.cover_again(met), 0u);
  drain(false);
  EXPECT_GT(source.drawn(), before);
  EXPECT_TRUE(met.missing().empty()) << met.missing().front();
  EXPECT_EQ(source.cover_again(met), 0u);
}

}  // namespace
}  // namespace kv::cli
