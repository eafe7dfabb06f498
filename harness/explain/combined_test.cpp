// What one hypothesis does not explain: a fault of some rows alone, and two at once.
#include "harness/explain/combined.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/explain/simulated.h"

namespace kv {
namespace {

// Groups of three heads, two requests, one of them with PAD.
Case case_of_threes() {
  const RequestId a(0), b(1);
  Case c;
  c.shape.query_heads = 6;
  c.shape.kv_heads = 2;
  c.shape.head_dim_k = c.shape.head_dim_v = 16;
  c.shape.scale = 0.3f;
  c.pool = {.page_slots = 8, .page_count = 40};
  c.data.seed = 23;
  c.ops = {op::Admit{a, 40}, op::Admit{b, 40},
           op::Step{{{.request = a, .append = 21, .queries = 4},
                     {.request = b, .append = 14, .pad_left = 4, .queries = 3}}}};
  return c;
}

using Change = std::function<void(const Scene&, const RowAt&, Reading&)>;

/// The hypothesis of that name, wherever it is looked at.
Change change_of(const std::string& name) {
  return [name](const Scene& scene, const RowAt& at, Reading& r) {
    for (const Hypothesis& h : hypotheses(scene))
      if (h.name == name) h.change(scene, at, r);
  };
}

Explanation explained(const Change& change) {
  auto e = explain(
      case_of_threes(),
      [&](const Case& one) -> Result<Observation> { return simulate_change(one, change); }, {});
  EXPECT_TRUE(e.ok()) << e.error().message;
  return e.ok() ? *e : Explanation{};
}

std::string all_names(const Explanation& e) {
  std::string text;
  for (const Named& named : e.remain) text += " " + named.name;
  return text;
}
bool has(const Explanation& e, const std::string& name) {
  return std::any_of(e.remain.begin(), e.remain.end(),
                     [&](const Named& named) { return named.name == name; });
}

// Fails when a fault of some heads alone is unknown, or is told of all heads.
TEST(Combined, AFaultOfSomeRowsIsNamedWithThem) {
  const Change change = change_of("nearest-pad-visible");
  const Explanation e = explained([&](const Scene& s, const RowAt& at, Reading& r) {
    if (at.head % 3 == 2) change(s, at, r);
  });
  EXPECT_TRUE(has(e, "nearest-pad-visible@head-of-group=2")) << all_names(e) << e.sentence;
  EXPECT_NE(e.sentence.find("in query head 2 of each group alone"), std::string::npos)
      << e.sentence;
  EXPECT_LE(e.remain.size(), 3u) << all_names(e);
}

// Fails when two faults at once are unknown, or are not said to be two.
TEST(Combined, TwoFaultsAtOnceAreNamedAsTwo) {
  const Change first = change_of("causal-plus-one"), second = change_of("scale-half");
  const Explanation e = explained([&](const Scene& s, const RowAt& at, Reading& r) {
    first(s, at, r);
    second(s, at, r);
  });
  EXPECT_TRUE(has(e, "causal-plus-one+scale-half")) << all_names(e) << e.sentence;
  EXPECT_NE(e.sentence.find("two things are wrong at once: "), std::string::npos) << e.sentence;
  EXPECT_LE(e.remain.size(), 3u) << all_names(e);
}

// Fails when a fault that one hypothesis explains is told as two.
TEST(Combined, OneFaultIsNoPair) {
  const Explanation e = explained(change_of("scale-half"));
  EXPECT_TRUE(has(e, "scale-half")) << all_names(e);
  for (const Named& named : e.remain) EXPECT_EQ(named.name.find('+'), std::string::npos);
}

// Fails when a fault of which the catalogue knows nothing is explained by two that it knows.
TEST(Combined, WhatIsNotKnownStaysUnknown) {
  const Explanation e = explained([](const Scene&, const RowAt& at, Reading& r) {
    for (size_t i = 0; i < r.copies.size(); ++i)
      if (r.copies[i] > 0 && (i * 7 + at.head * 3 + at.query) % 5 == 0) r.copies[i] = 3;
  });
  EXPECT_TRUE(e.remain.empty()) << all_names(e);
  EXPECT_NE(e.sentence.find("not known"), std::string::npos) << e.sentence;
}

// Fails when a part that is missing in another scene is replaced by nothing.
TEST(Combined, IsMadeAgainOfItsPartsOnly) {
  const auto nothing = [](const Scene&, const RowAt&, Reading&) {};
  Hypothesis pair;
  pair.parts = {"one", "two"};
  const std::vector<Hypothesis> both = {{"one", "1", nothing}, {"two", "2", nothing}};
  ASSERT_TRUE(found_again(pair, both));
  EXPECT_EQ(found_again(pair, both)->name, "one+two");
  EXPECT_FALSE(found_again(pair, {both[0]}));
  pair.parts = {"two"};
  pair.kind = "layer=1";
  EXPECT_EQ(found_again(pair, both)->name, "two@layer=1");
}

}  // namespace
}  // namespace kv
