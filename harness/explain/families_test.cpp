// Each family of hypotheses: a member that is planted is named, what is like it is not named so,
// and where nothing is planted nothing is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "harness/explain/simulated.h"

namespace kv {
namespace {

// Grouped heads, several pages, two requests of different length, one row with PAD.
Case grouped_case() {
  const RequestId a(0), b(1);
  Case c;
  c.shape.query_heads = 4;
  c.shape.kv_heads = 2;
  c.shape.head_dim_k = c.shape.head_dim_v = 16;
  c.shape.scale = 0.3f;
  c.pool = {.page_slots = 8, .page_count = 40};
  c.data.seed = 11;
  c.ops = {op::Admit{a, 40}, op::Admit{b, 40},
           op::Step{{{.request = a, .append = 37, .queries = 5},
                     {.request = b, .append = 14, .pad_left = 4, .queries = 3}}}};
  return c;
}

// Where no entry of the table that is read by mistake is unused.
Case table_case() {
  Case c = grouped_case();
  std::get<op::Step>(c.ops.back()).rows = {{.request = RequestId(0), .append = 40, .queries = 5},
                                           {.request = RequestId(1), .append = 8, .queries = 3}};
  return c;
}

op::StepRow& first_row(Case& c) { return std::get<op::Step>(c.ops.back()).rows[0]; }

Case three_requests() {
  Case c = grouped_case();
  c.ops.insert(c.ops.begin(), op::Admit{RequestId(2), 40});
  std::get<op::Step>(c.ops.back())
      .rows.push_back({.request = RequestId(2), .append = 25, .queries = 2});
  return c;
}

Case masked_case() {
  Case c = grouped_case();
  c.mask.encoding = MaskEncoding::kBoolKeep;
  c.mask.broadcast_head = false;
  return c;
}

// Where the mask hides everything from a row there is something to add the minimum to.
Case additive_case() {
  Case c = masked_case();
  c.mask.encoding = MaskEncoding::kAdditive;
  c.mask.additive_dtype = DType::kF16;
  c.mask.additive_finite_minimum = true;
  return c;
}

// More query rows than drafted tokens, in two branches.
Case tree_case() {
  Case c = grouped_case();
  first_row(c) = {.request = RequestId(0), .append = 6, .queries = 8};
  first_row(c).tree_parents = {-1, 0, 1, 0, 3, 4};
  return c;
}

// Rows that see nothing of the first tiles that others see, one that sees nothing at all, and
// scores far below 0 when asked for.
Case windowed_case(double logit_shift = 0) {
  Case c = grouped_case();
  c.mask.window_left = 6;
  c.data.view.logit_shift = logit_shift;
  std::get<op::Step>(c.ops.back()).rows = {
      {.request = RequestId(0), .append = 150, .queries = 40},
      {.request = RequestId(1), .append = 18, .pad_left = 3, .queries = 24}};
  return c;
}

// One query over three splits of 16.
Case split_case(double logit_shift = 0) {
  Case c = grouped_case();
  c.data.view.logit_shift = logit_shift;
  std::get<op::Step>(c.ops.back()).rows = {{.request = RequestId(0), .append = 39, .queries = 1},
                                           {.request = RequestId(1), .append = 21, .queries = 1}};
  return c;
}

Case with_window(Case c, int64_t left) {
  c.mask.window_left = left;
  return c;
}

Case with_sinks(Case c) {
  c.shape.sinks = true;
  return c;
}

Case latent_case() {
  Case c = grouped_case();
  c.shape.head_dim_k = 24;
  c.shape.value_in_key = true;
  return c;
}

struct Plant {
  std::string fault;
  Case c;
  std::string alike;  // another fault of the same case
};

bool names(const Explanation& e, const std::string& fault) {
  const std::string family = fault.substr(0, fault.find(':'));
  return std::any_of(e.remain.begin(), e.remain.end(), [&](const Named& named) {
    return named.name == fault || named.name.starts_with(family + ":");
  });
}

std::string all_names(const Explanation& e) {
  std::string text;
  for (const Named& named : e.remain) text += " " + named.name;
  return text;
}

Result<Explanation> explained(const Case& c, const std::string& fault) {
  return explain(c, [&](const Case& one) { return simulate(one, fault); }, {});
}

void expect_told_apart(const Plant& plant) {
  const auto e = explained(plant.c, plant.fault);
  ASSERT_TRUE(e.ok()) << plant.fault << ": " << e.error().message;
  EXPECT_TRUE(names(*e, plant.fault)) << plant.fault << " was left out of" << all_names(*e);
  EXPECT_LE(e->remain.size(), 3u) << plant.fault << " among" << all_names(*e);
  const auto other = explained(plant.c, plant.alike);
  ASSERT_TRUE(other.ok()) << plant.alike << ": " << other.error().message;
  EXPECT_TRUE(names(*other, plant.alike)) << plant.alike << " was left out of" << all_names(*other);
  EXPECT_FALSE(names(*other, plant.fault)) << plant.alike << " was taken for" << all_names(*other);
  const auto none = explained(plant.c, "");
  ASSERT_FALSE(none.ok()) << plant.fault << ": a correct kernel was explained";
  EXPECT_EQ(none.error().kind, ErrorKind::kBadInput);
}

// Fails when a hypothesis about another plane, row or column of the mask cannot be told from its
// neighbour, or is read where the mask has none.
TEST(Families, MaskTensors) {
  for (const Plant& plant : {
           Plant{"mask-of-head-zero", masked_case(), "mask-of-kv-head"},
           Plant{"mask-of-kv-head", masked_case(), "mask-of-next-head"},
           Plant{"mask-of-first-request", masked_case(), "mask-of-first-query"},
           Plant{"mask-of-next-query", masked_case(), "mask-of-previous-query"},
           Plant{"mask-ignored", masked_case(), "mask-inverted"},
           Plant{"mask-key-plus-one", masked_case(), "mask-key-minus-one"},
           Plant{"mask-ignored-in-full-tiles:16/0", masked_case(), "mask-ignored"},
           Plant{"mask-minimum-added", additive_case(), "empty-row-mean"},
       }) {
    expect_told_apart(plant);
  }
}

// Fails when a tree is read as any other triangle.
TEST(Families, Trees) {
  expect_told_apart({"tree-ignored", tree_case(), "tree-self-alone"});
  expect_told_apart({"tree-from-first-query", tree_case(), "tree-ignored"});
  expect_told_apart({"tree-key-plus-one", tree_case(), "tree-key-minus-one"});
  expect_told_apart({"tree-parent-alone", tree_case(), "tree-self-alone"});
  expect_told_apart({"causal-plus-one", tree_case(), "tree-ignored"});
}

// Fails when the rows that become NaN, or lose their weights, need not be exactly those that the
// fault predicts.
TEST(Families, LostStates) {
  for (const Plant& plant : {
           Plant{"hidden-tile-nan:16/0/first", windowed_case(), "empty-row-nan"},
           Plant{"hidden-tile-maximum-zero:16/0/first", windowed_case(-120), "maximum-missing"},
           Plant{"hidden-split-nan:16", with_window(split_case(), 9), "first-key-dropped"},
           Plant{"hidden-split-maximum-zero:16", with_window(split_case(-120), 9),
                 "first-key-dropped"},
           Plant{"empty-row-mean-of-tile:64/0", windowed_case(), "empty-row-mean"},
           Plant{"tile-polarity-inverted:32/0", grouped_case(), "polarity-inverted"},
           Plant{"pad-as-zeros:16/0", grouped_case(), "pad-visible"},
       }) {
    expect_told_apart(plant);
  }
}

// Fails when a wrong LSE beside a right output is explained by anything that leaves the LSE open.
TEST(Families, LseAlone) {
  for (const Plant& plant : {
           Plant{"lse-other-layout", grouped_case(), "lse-strides-exchanged"},
           Plant{"lse-without-maximum", grouped_case(), "lse-is-maximum"},
           Plant{"lse-without-sink", with_sinks(grouped_case()), "sink-missing"},
           Plant{"empty-row-lse-zero", windowed_case(), "empty-row-lse-plus-infinity"},
           Plant{"empty-row-lse-finite-minimum", windowed_case(), "empty-row-lse-nan"},
       }) {
    expect_told_apart(plant);
  }
}

// Fails when distances that are measured from another slot are taken for another slope.
TEST(Families, DistancesFromAnotherSlot) {
  Case c = grouped_case();
  c.shape.alibi = true;
  expect_told_apart({"alibi-anchor-plus-one", c, "alibi-anchor-minus-one"});
}

// Fails when parts of a merge are not told from each other.
TEST(Families, SplitsAndTheirMerge) {
  for (const Plant& plant : {
           Plant{"split-sums-unrescaled:16", split_case(), "splits-unrescaled:16"},
           Plant{"partial-split-dropped:16", split_case(), "split-dropped:16:1"},
           Plant{"sink-per-split-and-row:16", with_sinks(split_case()), "sink-per-split:16"},
       }) {
    expect_told_apart(plant);
  }
}

// Fails when a place or a part of a row that is read wrongly is taken for its neighbour.
TEST(Families, PlacesAndParts) {
  for (const Plant& plant : {
           Plant{"table-row-by-pages", table_case(), "request-minus-one"},
           Plant{"pages-exchanged:0:1", grouped_case(), "page-as:0:1"},
           Plant{"requests-reversed", three_requests(), "request-plus-one"},
           Plant{"anchor-of-previous-request", grouped_case(), "anchor-of-next-request"},
           Plant{"nearest-pad-visible", grouped_case(), "pad-visible"},
           Plant{"tile-as-first:16", split_case(), "tile-as-previous:16"},
           Plant{"value-page-of-first-step:8", split_case(), "page-of-first-step:8"},
           Plant{"query-of-first-request", grouped_case(), "query-zero-always"},
           Plant{"window-start-of-last-query", windowed_case(), "window-left-minus-one"},
           Plant{"score-dims-dropped:8", grouped_case(), "value-dims-dropped:8"},
           Plant{"latent-value-last", latent_case(), "score-dims-dropped:8"},
           Plant{"small-dots-zero:2^-0", grouped_case(), "scale-half"},
       }) {
    expect_told_apart(plant);
  }
}

// Fails when a fault that reads slots nobody wrote is left out because states that become NaN
// happen to fit: which of both it was, NaN does not say.
TEST(Families, ANanThatIsReadStandsBesideOneThatIsMade) {
  const auto e = explained(grouped_case(), "table-row-by-pages");
  ASSERT_TRUE(e.ok()) << e.error().message;
  const bool known = names(*e, "hidden-split-nan") || names(*e, "hidden-tile-nan");
  EXPECT_TRUE(!known || names(*e, "table-row-by-pages")) << all_names(*e);
}

/// Scores are `factor` times what they should be.
Observe scaled_by(double factor) {
  return [factor](const Case& c) -> Result<Observation> {
    return simulate_change(c,
                           [factor](const Scene&, const RowAt&, Reading& r) { r.scale *= factor; });
  };
}

// Fails when a factor that is in no list is not found, or when one that was fitted to a single LSE
// is believed without another case.
TEST(Families, AFactorIsFittedAndHasToHoldElsewhere) {
  Case c = grouped_case();
  c.shape.softcap = 4;
  const auto e = explain(c, scaled_by(1.003), {});
  ASSERT_TRUE(e.ok()) << e.error().message;
  ASSERT_EQ(e->remain.size(), 1u) << all_names(*e);
  EXPECT_EQ(e->remain[0].name, "scale-factor");
  EXPECT_NE(e->remain[0].sentence.find("1.003"), std::string::npos) << e->remain[0].sentence;
  std::get<op::Step>(c.ops.back()).rows = {{.request = RequestId(0), .append = 1, .queries = 1}};
  c.shape.query_heads = c.shape.kv_heads = 1;
  const auto by_chance = explain(c,
                                 [](const Case& one) -> Result<Observation> {
                                   Observation o = fake_observation(one);
                                   o.ops.back().layers[0].lse[0] += 0.01f;
                                   return o;
                                 },
                                 {});
  ASSERT_TRUE(by_chance.ok()) << by_chance.error().message;
  EXPECT_FALSE(names(*by_chance, "scale-factor")) << all_names(*by_chance);
}

/// Every output `ulps` further on.
Observe moved_by(uint16_t ulps) {
  return [ulps](const Case& c) -> Result<Observation> {
    Observation o = fake_observation(c);
    for (std::vector<std::byte>* output : {&o.ops.back().layers[0].output}) {
      for (size_t i = 0; i + 1 < output->size(); i += 2) {
        uint16_t bits = 0;
        std::memcpy(&bits, &(*output)[i], 2);
        bits = static_cast<uint16_t>(bits + ulps);
        std::memcpy(&(*output)[i], &bits, 2);
      }
    }
    return o;
  };
}

// Fails when an error that a rounded P may have is not named, or when any error is named so.
TEST(Families, RoundingThatIsNotDeclared) {
  const auto small = explain(grouped_case(), moved_by(1), {});
  ASSERT_TRUE(small.ok()) << small.error().message;
  EXPECT_TRUE(names(*small, "probability-rounded:bf16")) << all_names(*small);
  const auto large = explain(grouped_case(), moved_by(200), {});
  ASSERT_TRUE(large.ok()) << large.error().message;
  EXPECT_FALSE(names(*large, "probability-rounded:bf16")) << all_names(*large);
}

}  // namespace
}  // namespace kv
