// Every relation applies to some drawn case, and its image is lawful, repeatable and another case.
#include "harness/relation/relation.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "harness/case/data.h"
#include "harness/case/json.h"
#include "harness/case/timeline.h"
#include "harness/gen/draw.h"
#include "harness/relation/draw_related.h"

namespace kv {
namespace {

Case drawn(uint64_t index) {
  PhiloxSource choices(7, index);
  return draw(choices);
}

TEST(Relation, NamesAreUniqueAndReasonsAreGiven) {
  std::set<std::string_view> names;
  for (const Relation& r : relations()) {
    EXPECT_TRUE(names.insert(r.name).second) << r.name;
    EXPECT_FALSE(r.purpose.empty()) << r.name;
    EXPECT_FALSE(r.finds.empty()) << r.name;
    EXPECT_EQ(find_relation(r.name), &r);
  }
  EXPECT_EQ(find_relation("nonsense"), nullptr);
}

TEST(Relation, EveryOneAppliesAndItsImageIsLawfulAndPure) {
  std::map<std::string_view, int> applied;
  for (uint64_t i = 0; i < 200; ++i) {
    Case c = drawn(i);
    for (const Relation& r : relations()) {
      c.exec.relation = r.name;
      c.exec.relation_seed = i;
      const auto image = image_of(c);
      ASSERT_TRUE(image.ok()) << image.error().message;
      if (!image->has_value()) continue;
      ++applied[r.name];
      EXPECT_TRUE(Timeline::create((*image)->c).ok());
      EXPECT_TRUE((*image)->c.exec.relation.empty());
      EXPECT_EQ((*image)->c, (*image_of(c).value()).c) << r.name;
    }
  }
  for (const Relation& r : relations()) EXPECT_GE(applied[r.name], 5) << r.name;
}

TEST(Relation, AnUnknownNameIsBadInput) {
  Case c = drawn(0);
  c.exec.relation = "nonsense";
  const auto image = image_of(c);
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(image.error().kind, ErrorKind::kBadInput);
  EXPECT_NE(image.error().message.find("nonsense"), std::string::npos);
}

TEST(Relation, DrawnCasesKeepTheirRelationInTheirFile) {
  int related = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    PhiloxSource choices(7, i);
    const Case c = draw_related(choices);
    related += !c.exec.relation.empty();
    const auto back = parse_case(case_to_json(c), "drawn");
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, c);
  }
  EXPECT_GT(related, 5);
  EXPECT_LT(related, 40);
}

std::vector<double> values(const Case& c, const RowAddress& where) {
  Slot slot{.pad = false, .history = 42, .position = 5, .previous = 41};
  std::vector<std::byte> bytes(row_bytes(c.shape, where.role));
  fill_row(c, where, slot, bytes);
  std::vector<double> row(row_elements(c.shape, where.role));
  decode_row(tensor_dtype(c.shape, where.role), bytes.data(), row.size(), row.data());
  return row;
}

// A view moves, scales and shifts exactly what it names.
TEST(DataView, PresentsTheDesignsNumbers) {
  Case c;
  c.shape.query_heads = 6;
  c.shape.kv_heads = 3;
  c.data.seed = 1;
  Case v = c;
  v.data.view = {.head_rotation = 2, .value_rotation = 3, .key_exponent = 2};
  const RowAddress key{.role = TensorRole::kKey, .head = 0}, key2{.role = key.role, .head = 2};
  const auto k = values(v, key), k2 = values(c, key2);
  for (size_t i = 0; i < k.size(); ++i) EXPECT_EQ(k[i], 4 * k2[i]);
  const auto value = values(v, {.role = TensorRole::kValue, .head = 1});
  const auto value0 = values(c, {.role = TensorRole::kValue, .head = 0});
  for (size_t i = 0; i < value.size(); ++i) EXPECT_EQ(value[i], value0[(i + 3) % value.size()]);
  EXPECT_EQ(values(v, {.role = TensorRole::kQuery, .head = 1}),
            values(c, {.role = TensorRole::kQuery, .head = 5}));
  v = c;
  v.data.view.logit_shift = -5000;
  const double shift =
      values(v, key)[0] * values(v, {.role = TensorRole::kQuery})[0] * double{c.shape.scale};
  EXPECT_EQ(shift, -5000);
  v = c;
  v.shape.kv_heads = 6;
  v.data.view.kv_head_repeat = 2;
  EXPECT_EQ(values(v, {.role = TensorRole::kKey, .head = 5}), values(c, key2));
}

}  // namespace
}  // namespace kv
