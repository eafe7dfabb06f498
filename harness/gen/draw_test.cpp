#include "harness/gen/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/case/features.h"
#include "harness/case/json.h"
#include "harness/case/timeline.h"

namespace kv {
namespace {

constexpr uint64_t kDraws = 20000;

Case drawn(uint64_t index) {
  PhiloxSource choices(1, index);
  return draw(choices, {.variants = {"one", "two", "three"}});
}

TEST(Choices, StayInRangeWhateverTheSource) {
  const std::vector<uint8_t> bytes(40, 0xff);
  PhiloxSource random(1, 2);
  BytesSource fuzz(bytes);
  ListSource list(std::vector<uint64_t>(9, ~uint64_t{0}));
  for (ChoiceSource* source : std::initializer_list<ChoiceSource*>{&random, &fuzz, &list}) {
    for (const uint64_t bound : {1ull, 2ull, 255ull, 256ull, 257ull, 1ull << 32, ~0ull}) {
      for (int i = 0; i < 4; ++i) EXPECT_LT(source->below(bound), bound);
    }
  }
  EXPECT_EQ(fuzz.below(100), 0u) << "run out";
  EXPECT_EQ(list.below(100), 0u) << "run out";
}

TEST(Choices, RandomOnesAreSpreadAndRepeatable) {
  std::array<uint32_t, 6> seen{};
  PhiloxSource a(3, 4), b(3, 4);
  for (int i = 0; i < 6000; ++i) {
    const uint64_t choice = a.below(6);
    EXPECT_EQ(choice, b.below(6));
    ++seen[choice];
  }
  for (const uint32_t count : seen) EXPECT_NEAR(count, 1000, 150);
}

TEST(Draw, EveryCaseIsLawfulAndRoundTrips) {
  for (uint64_t i = 0; i < kDraws; ++i) {
    const Case c = drawn(i);
    const Result<Timeline> timeline = Timeline::create(c);
    ASSERT_TRUE(timeline.ok()) << i << ": " << timeline.error().message << "\n" << case_to_json(c);
    const std::string text = case_to_json(c);
    const Result<Case> back = parse_case(text, "drawn");
    ASSERT_TRUE(back.ok()) << i << ": " << back.error().message;
    ASSERT_EQ(*back, c) << i;
    ASSERT_EQ(case_to_json(*back), text) << i;
  }
}

TEST(Draw, EveryFeatureOfTheSliceIsMet) {
  FeatureSet met;
  for (uint64_t i = 0; i < kDraws; ++i) met += features_of(drawn(i));
  const std::set<Feature> not_drawn = {};
  for (size_t i = 0; i < kFeatureCount; ++i) {
    const auto feature = static_cast<Feature>(i);
    EXPECT_EQ(met.has(feature), !not_drawn.contains(feature)) << feature_name(feature);
    if (met.has(feature)) {
      EXPECT_GT(met[feature], 20u) << feature_name(feature);
    }
  }
}

TEST(Draw, NoFeatureNeedsLuckInTwoHundredCases) {
  FeatureSet met;
  for (uint64_t i = 0; i < 200; ++i) met += features_of(drawn(i));
  for (const Feature feature :
       {feature("empty_row"), feature("page_straddle"), feature("gqa"), feature("mqa"),
        feature("queries_not_keys"), feature("mixed_batch"), feature("far_pages"),
        feature("padding_left"), feature("padding_right"), feature("page_reuse"),
        feature("length_mod_page_0"), feature("length_mod_page_1"),
        feature("length_mod_page_minus_1"), feature("prefill_chunk")}) {
    EXPECT_TRUE(met.has(feature)) << feature_name(feature);
  }
}

TEST(Draw, VariantsChangeNothingButTheForcedOne) {
  std::set<std::string> forced;
  for (uint64_t i = 0; i < 500; ++i) {
    Case with = drawn(i);
    PhiloxSource choices(1, i);
    const Case without = draw(choices);
    EXPECT_EQ(without.exec.variant, "");
    forced.insert(with.exec.variant);
    with.exec.variant.clear();
    EXPECT_EQ(with, without);
  }
  EXPECT_EQ(forced, (std::set<std::string>{"", "one", "two", "three"}));
}

TEST(Draw, AllZerosIsTheSimplestCase) {
  ListSource zeros({});
  const Case c = draw(zeros);
  ASSERT_EQ(c.ops.size(), 2u);
  EXPECT_EQ(std::get<op::Step>(c.ops[1]).rows,
            (std::vector<op::StepRow>{{.append = 1, .queries = 1}}));
  EXPECT_EQ(c.shape, Shape{});
  EXPECT_EQ(c.pool.page_count, 1u);
}

TEST(Draw, BytesAreChoicesAndAnyBytesWillDo) {
  Philox philox{5};
  for (uint64_t i = 0; i < 2000; ++i) {
    std::vector<uint8_t> bytes(i % 300);
    for (size_t b = 0; b < bytes.size(); ++b) bytes[b] = static_cast<uint8_t>(philox.word(i, b));
    BytesSource choices(bytes);
    const Case c = draw(choices);
    const Result<Timeline> timeline = Timeline::create(c);
    ASSERT_TRUE(timeline.ok()) << timeline.error().message;
  }
}

// The cost in query rows * slots * heads * dimensions, tiles filled up: the budget holds.
TEST(Draw, CasesAreMostlySmall) {
  std::vector<double> work;
  for (uint64_t i = 0; i < 2000; ++i) {
    const Case c = drawn(i);
    Timeline timeline = Timeline::create(c).value();
    double sum = 0;
    for (uint32_t o = 0; o < c.ops.size(); ++o) {
      for (const PlannedRow& row : timeline.apply(o).rows) {
        sum += double(row.queries) * row.kv_length * c.shape.query_heads *
               (c.shape.head_dim_k + c.shape.head_dim_v) * c.shape.layers;
      }
    }
    work.push_back(sum);
  }
  std::sort(work.begin(), work.end());
  EXPECT_LT(work[work.size() / 2], 1.5e6);
  EXPECT_LT(work.back(), 5e7);  // latent caches have dimensions of 576 and 512
}

}  // namespace
}  // namespace kv
