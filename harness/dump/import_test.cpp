// Fails when a value of a dump reaches another place of the case than the dump's lists say, when a
// setting is lost, or when a dump that contradicts itself becomes a case.
#include <functional>

#include "harness/dump/import_testing.h"

namespace kv {
namespace {

TEST_F(ImportTest, PagedRowsFindTheirPlace) {
  const auto made = import_dump(paged().file, {.name = "d"});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->c.pool.page_slots, 2u);
  EXPECT_EQ(made->c.pool.page_count, 5u);
  EXPECT_EQ(made->c.shape.scale, 0.25f);
  EXPECT_EQ(made->c.shape.query_heads, 2u);
  EXPECT_EQ(made->c.ops.size(), 3u);
  EXPECT_EQ(made->shared_pages, 0u);
  EXPECT_TRUE(made->not_used.empty());
  expect_marks(*made);
}

TEST_F(ImportTest, ContiguousRowsFindTheirPlace) {
  const auto made = import_dump(contiguous().file, {.name = "d"});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->c.pool.page_slots, 16u);
  expect_marks(*made);
}

TEST_F(ImportTest, HeadsMayComeBeforeSlots) {
  for (Dump d : {paged(true), contiguous(true)}) {
    d.file.metadata["layout"] = "head_slot";
    const auto made = import_dump(d.file, {.name = "d"});
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(made->c.pool.layout, CacheLayout::kHeadSlot);
    expect_marks(*made);
  }
}

TEST_F(ImportTest, SaysWhatItAssumesSharesAndLeaves) {
  Dump d = paged();
  d.file.metadata.clear();
  d.add("softcap", "F64", {}, bytes<double>({30}));
  d.add("output", "F32", {1}, bytes<float>({0}));
  d.add("block_tables", "I32", {2, 3}, bytes<int32_t>({6, 1, 4, 6, 1, 4}));
  const auto made = import_dump(d.file, {.name = "d", .settings = {.causal = Causal::kTopLeft}});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->not_used, std::vector<std::string>({"output"}));
  EXPECT_EQ(made->shared_pages, 2u);  // the second request holds two pages
  EXPECT_EQ(made->c.shape.softcap, 30);
  EXPECT_EQ(made->c.mask.causal, Causal::kTopLeft);
  EXPECT_EQ(made->assumed.size(), 4u);
}

TEST_F(ImportTest, APrefixChoosesALayer) {
  Dump d = contiguous();
  for (auto& tensor : d.file.tensors)
    if (tensor.name == "k" || tensor.name == "v") tensor.name = "layers.3." + tensor.name;
  EXPECT_FALSE(import_dump(d.file, {.name = "d"}).ok());
  const auto made = import_dump(d.file, {.name = "d", .prefix = "layers.3."});
  ASSERT_TRUE(made.ok()) << made.error().message;
  expect_marks(*made);
  // Even where the tensors without it would do: it is no other layer's.
  const auto slip = import_dump(contiguous().file, {.name = "d", .prefix = "layers.4."});
  ASSERT_FALSE(slip.ok());
  EXPECT_NE(slip.error().message.find("begins with \"layers.4.\", got none"), std::string::npos)
      << slip.error().message;
}

using Change = std::function<void(Dump&)>;

Change without(const char* name) {
  return [=](Dump& d) { d.drop(name); };
}
Change list(const char* name, std::vector<int32_t> values) {
  return [=](Dump& d) { d.lengths(name, values); };
}
Change tensor(const char* name, const char* type, std::vector<uint64_t> shape) {
  const uint64_t count = *element_count(shape);
  return [=](Dump& d) { d.add(name, type, shape, bytes(std::vector<float>(count, 1))); };
}
Change setting(const char* key, const char* text) {
  return [=](Dump& d) { d.file.metadata[key] = text; };
}

struct Lie {
  Change change;
  const char* part;  // of what is said
};
void expect_refused(const std::vector<Lie>& lies) {
  for (const auto& [change, part] : lies) {
    Dump d = paged();
    change(d);
    const auto made = import_dump(d.file, {.name = "d.safetensors"});
    ASSERT_FALSE(made.ok()) << part;
    const std::string& said = made.error().message;
    EXPECT_EQ(made.error().kind, ErrorKind::kBadInput);
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
    EXPECT_NE(said.find("d.safetensors: "), std::string::npos) << said;
  }
}

TEST_F(ImportTest, RefusesListsThatContradictTheTensors) {
  expect_refused({
      {without("query"), "a tensor named q, query"},
      {without("seq_lens"), "a length for each request"},
      {list("context_lens", {5, 3}), "one name for it"},
      {list("seq_lens", {5}), "I32 or I64 [2]"},
      {list("seq_lens", {5, 0}), "kv_lengths[1]"},
      {list("seq_lens", {5, 9}), "1 to 8 slots, got 9"},
      {list("seq_lens", {7, 3}), "block_tables[0, 3]"},
      {list("seq_lens", {5, 5}), "a page below 7, got 99"},
      {list("cu_seqlens_q", {0, 2}), "I32 or I64 [3]"},
      {list("cu_seqlens_q", {1, 2, 3}), "cu_q[0]"},
      {list("cu_seqlens_q", {0, 3, 2}), "cu_q[2]"},
      {list("cu_seqlens_q", {0, 1, 2}), "the 3 tokens"},
      {list("cu_seqlens_q", {0, 2, 4}), "q_lengths[1]"},
      {list("q_lengths", {2, 1}), "lengths or their sums"},
      {without("cu_seqlens_q"), "how many of the 3 tokens"},
  });
}

TEST_F(ImportTest, RefusesTensorsAndSettingsThatContradictEachOther) {
  expect_refused({
      {tensor("key_cache", "I32", {1, 1, 1, 2}), "F16, BF16, F32, F8_E4M3"},
      {tensor("key_cache", "F32", {1, 1}), "4 dimensions"},
      {tensor("key_cache", "F32", {1, 1, 1, 2}), "but for the last dimension"},
      {tensor("query", "F32", {3, 2, 3}), "rows of 2 elements"},
      {tensor("query", "F32", {3, 1, 1, 2}), "[tokens, heads, dim]"},
      {tensor("query", "F32", {3, 3, 2}), "shape.query_heads"},
      {setting("scale", "nan"), "scale: expected a number"},
      {setting("scale", "1e99"), "shape.scale"},
      {setting("causal", "yes"), "causal: expected"},
      {setting("page_size", "3"), "pool.page_slots"},
      {setting("page_size", "4096"), "page_size: expected 1 to 256"},
      {setting("page_size", "4294967298"), "page_size: expected 1 to 256"},
      {setting("window_left", "-5"), "mask.window_left"},
      {tensor("scale", "F32", {2}), "it once"},
  });
}

}  // namespace
}  // namespace kv
