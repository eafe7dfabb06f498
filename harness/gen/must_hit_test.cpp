// Every required pair is within the generator's reach, and what was not met is
// named.
#include "harness/gen/must_hit.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/gen/cover.h"

namespace kv {
namespace {

TEST(MustHit, NamesWhatWasNotMet) {
  MustHit met;
  EXPECT_EQ(met.met(), 0u);
  EXPECT_EQ(met.missing().size(), met.required());
  FeatureSet had;
  had[feature("gqa")] = 3;
  had[feature("empty_row")] = 1;
  EXPECT_EQ(met.gain(had), 3u);
  EXPECT_EQ(met.add(had), 3u);
  EXPECT_EQ(met.add(had), 0u);
  const auto missing = met.missing();
  const std::set<std::string> names(missing.begin(), missing.end());
  EXPECT_FALSE(names.contains("empty_row"));
  EXPECT_FALSE(names.contains("empty_row + gqa"));
  EXPECT_TRUE(names.contains("empty_row + mqa"));
  EXPECT_FALSE(names.contains("gqa + mqa"));  // of one axis
}

TEST(CoveringArray, MeetsEveryRequiredPairInFewCases) {
  for (const uint64_t seed : {1, 2, 3}) {
    const std::vector<uint64_t> chosen = covering_array(seed, {});
    MustHit met;
    for (const uint64_t index : chosen) {
      PhiloxSource choices(seed, index);
      met.add(features_of(draw(choices)));
    }
    EXPECT_TRUE(met.missing().empty()) << seed << ": " << met.missing().size() << " of "
                                       << met.required() << ", the first " << met.missing()[0];
    EXPECT_LE(chosen.size(), 400u);
    EXPECT_EQ(std::set<uint64_t>(chosen.begin(), chosen.end()).size(), chosen.size());
  }
}

}  // namespace
}  // namespace kv
