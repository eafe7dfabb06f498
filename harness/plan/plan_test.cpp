// The worked examples, and what a hostile config.json gets.
#include <gtest/gtest.h>

#include "harness/case/text_file.h"
#include "harness/plan/advice.h"
#include "harness/plan/capacity.h"

namespace kv {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

KvModel model_of(const std::string& file) {
  const auto text = read_text_file(KV_SOURCE_DIR "/harness/plan/testdata/" + file, 1 << 20);
  EXPECT_TRUE(text.ok());
  const auto model = read_kv_model(*text, file);
  EXPECT_TRUE(model.ok()) << model.error().message;
  return *model;
}
CacheSize size_of(const KvModel& model, const CacheLayoutChoice& choice) {
  const auto size = CacheSize::create(model, choice);
  EXPECT_TRUE(size.ok()) << size.error().message;
  return *size;
}

TEST(Plan, AModelOf32Heads) {
  const CacheSize size = size_of(model_of("llama_7b.json"), {});
  EXPECT_EQ(size.token_bytes(), 524'288u);
  EXPECT_EQ(size.key_bytes() * 32, 262'144u);
  EXPECT_EQ(size.request_bytes(4096), 2'147'483'648u);
  EXPECT_EQ(8 * size.request_bytes(4096), 17'179'869'184u);
  EXPECT_EQ(8 * size.request_bytes(8192), 34'359'738'368u);
  EXPECT_EQ(size.request_bytes(4097), 257u * 16 * 524'288);
  EXPECT_EQ(size.request_live_bytes(4097), 4097u * 524'288);
}

TEST(Plan, AModelOfEightSharedHeads) {
  KvModel model = model_of("llama_70b.json");
  const CacheSize size = size_of(model, {.dtype = DType::kBf16});
  EXPECT_EQ(size.token_bytes(), 327'680u);
  EXPECT_EQ(size.request_bytes(32'768), 10'737'418'240u);
  EXPECT_EQ(size.request_bytes(131'072), 42'949'672'960u);
  const CacheSize split = size_of(model, {.dtype = DType::kE4m3, .ranks = 4});
  EXPECT_EQ(split.request_bytes(32'768), kGiB + kGiB / 4);
  model.kv_heads = 64;
  EXPECT_EQ(size_of(model, {}).request_bytes(32'768), 85'899'345'920u);
}

TEST(Plan, RanksSplitOrRepeatTheHeads) {
  const KvModel model = model_of("llama_70b.json");
  EXPECT_EQ(size_of(model, {.ranks = 8}).token_bytes(), 327'680u / 8);
  const CacheSize repeated = size_of(model, {.ranks = 16});
  EXPECT_EQ(repeated.token_bytes(), 327'680u / 8);  // one head, kept twice
  EXPECT_EQ(repeated.token_bytes_all_ranks(), 2 * 327'680u);
  const auto wrong = CacheSize::create(model, {.ranks = 3});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message, "ranks: expected a divisor or a multiple of 8 KV heads, got 3");
}

TEST(Plan, ALatentVectorIsWholeOnEveryRank) {
  const KvModel model = model_of("deepseek_v3.json");
  EXPECT_EQ(model.latent_dim, 576u);
  for (const uint32_t ranks : {1u, 3u, 8u}) {
    EXPECT_EQ(size_of(model, {.dtype = DType::kBf16, .ranks = ranks}).token_bytes(), 61u * 576 * 2);
  }
}

TEST(Plan, AWindowBoundsWhatALayerKeeps) {
  const auto model = read_kv_model(
      R"({"num_hidden_layers": 4, "num_attention_heads": 2, "head_dim": 8, "torch_dtype": "float16",
          "sliding_window": 100, "layer_types": ["sliding_attention", "sliding_attention",
          "sliding_attention", "full_attention"]})",
      "c");
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->groups, (std::vector<LayerGroup>{{1, 0}, {3, 100}}));
  const CacheSize size = size_of(*model, {});
  EXPECT_EQ(size.group_pages({3, 100}, 10'000), 8u);  // slots 15 to 114 touch pages 0 to 7
  EXPECT_EQ(size.group_pages({3, 100}, 20), 2u);
  EXPECT_EQ(size.group_pages({1, 0}, 10'000), 625u);
  EXPECT_EQ(size.request_bytes(10'000), (625u + 3 * 8) * 16 * 2 * 2 * 8 * 2);
}

TEST(Plan, CapacityIsExact) {
  const CacheSize size = size_of(model_of("llama_7b.json"), {});
  const DeviceMemory memory{.cache_bytes = 16 * kGiB};
  EXPECT_EQ(largest_batch(size, memory, 4096), 8u);
  EXPECT_EQ(largest_batch(size, memory, 4097), 7u);
  EXPECT_EQ(largest_context(size, memory, 8, 8192), 4096u);
  EXPECT_EQ(largest_context(size, memory, 1, 8192), 8192u);
  EXPECT_EQ(largest_context(size, {.cache_bytes = 1}, 1, 8192), 0u);
  const auto curve = capacity_curve(size, memory, 8192);
  ASSERT_EQ(curve.size(), 4u);
  EXPECT_EQ(curve.back().batch, 4u);
}

TEST(Plan, AHostileConfigIsOneClearError) {
  const std::pair<const char*, const char*> kCases[] = {
      {"", "c: parse error"},
      {"[]", "c: expected one JSON object"},
      {"{}", "c: num_hidden_layers: expected an integer from 1 to 256, got nothing"},
      {R"({"num_hidden_layers": -1})", "c: num_hidden_layers: expected"},
      {R"({"num_hidden_layers": 1e2})", "c: num_hidden_layers: expected"},
      {R"({"num_hidden_layers": 99999999999999999999})", "c: num_hidden_layers: expected"},
      {R"({"num_hidden_layers": 2, "num_attention_heads": 0})", "c: num_attention_heads"},
      {R"({"num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 4})",
       "c: num_key_value_heads: expected a divisor of 6 heads, got 4"},
      {R"({"num_hidden_layers": 2, "num_attention_heads": 3, "hidden_size": 100})",
       "c: hidden_size: expected a multiple of 3 heads"},
      {R"({"num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 8, "torch_dtype": [1]})",
       "c: torch_dtype: expected \"float16\""},
      {R"({"num_hidden_layers": 2, "sliding_window": 4, "layer_types": ["x"]})",
       "c: layer_types: expected a list of 2 names"},
      {R"({"num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 8, "kv_lora_rank": 9})",
       "c: qk_rope_head_dim: expected"},
  };
  for (const auto& [text, begins] : kCases) {
    const auto model = read_kv_model(text, "c");
    ASSERT_FALSE(model.ok()) << text;
    EXPECT_EQ(model.error().kind, ErrorKind::kBadInput);
    EXPECT_EQ(model.error().message.rfind(begins, 0), 0u) << model.error().message;
  }
}

const Advice& about(const std::vector<Advice>& all, std::string_view what) {
  for (const Advice& advice : all) {
    if (advice.what == what) return advice;
  }
  ADD_FAILURE() << what;
  return all.front();
}

TEST(Advise, EachChoiceTurnsOnItsReason) {
  const KvModel model = model_of("llama_70b.json");
  const CacheSize size = size_of(model, {.dtype = DType::kBf16});
  const auto with = [&](Workload load) {
    const auto advice = advise(model, size, load);
    EXPECT_TRUE(advice.ok());
    EXPECT_EQ(advice->size(), 5u);
    for (const Advice& a : *advice) EXPECT_FALSE(a.reason.empty()) << a.what;
    return *advice;
  };
  const auto small = with({.context = 32'768, .batch = 1, .cache_bytes = 11 * kGiB});
  EXPECT_EQ(about(small, "K/V dtype").choice, "bf16");
  EXPECT_EQ(about(small, "speculation").choice, "on, 4 draft tokens");
  EXPECT_EQ(about(small, "kernel variant").choice, "mixed, decode split 16 ways");
  EXPECT_EQ(about(small, "page size").choice, "256 slots");

  const auto tight = with({.context = 32'768, .batch = 2, .cache_bytes = 11 * kGiB});
  EXPECT_EQ(about(tight, "K/V dtype").choice, "e4m3");
  const auto full = with({.context = 1024, .batch = 256, .cache_bytes = kGiB});
  EXPECT_EQ(about(full, "K/V dtype").choice, "none fits");
  EXPECT_EQ(about(full, "speculation").choice, "off");
  EXPECT_EQ(about(full, "kernel variant").choice, "mixed");
  EXPECT_EQ(about(full, "page size").choice, "16 slots");
}

TEST(Advise, TheTraceDecidesAboutThePrefixCache) {
  const KvModel model = model_of("llama_7b.json");
  const CacheSize size = size_of(model, {});
  const std::vector<TraceRequest> shared = {{.prompt_tokens = 1024, .blocks = {1, 2}},
                                            {.prompt_tokens = 1536, .blocks = {1, 2, 3}}};
  const std::vector<TraceRequest> apart = {{.prompt_tokens = 512, .blocks = {1}},
                                           {.prompt_tokens = 512, .blocks = {2}}};
  EXPECT_EQ(prefix_share(shared).repeated, 2u);
  EXPECT_EQ(prefix_share(shared).blocks, 5u);
  const auto on = advise(model, size, {.context = 4096, .trace = shared});
  EXPECT_EQ(about(*on, "prefix cache").choice, "on");
  const auto off = advise(model, size, {.context = 4096, .trace = apart});
  EXPECT_EQ(about(*off, "prefix cache").choice, "off");
}

}  // namespace
}  // namespace kv
