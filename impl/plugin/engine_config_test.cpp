// Which configurations the engine level turns down before it reads or makes anything by them.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "impl/plugin/engine_client_test.h"

namespace kvattn {
namespace {

using namespace kvattn::testing;

kv_status fill_nothing(void*, const kv_token*, void*, void*, void*) { return KV_OK; }

/// A lawful model with RoPE over the leading half of its dimensions.
struct Asked {
  kv_attention_shape shape = {};
  kv_layer_group group = {sizeof group, 2, -1};
  kv_engine_config config = {};

  Asked() {
    constexpr DLDataType kFloat = {kDLFloat, 32, 1};
    shape.struct_bytes = sizeof shape;
    shape.query_heads = 4;
    shape.kv_heads = 2;
    shape.head_dim_k = shape.head_dim_v = 8;
    shape.page_slots = 4;
    shape.query_dtype = shape.kv_dtype = shape.output_dtype = kFloat;
    shape.scale = 0.25f;
    shape.causal = KV_CAUSAL_BOTTOM_RIGHT;
    shape.window_left = shape.window_right = -1;
    shape.rope = KV_ROPE_NEOX;
    shape.rope_dims = 4;
    shape.rope_theta = 10000;
    config.struct_bytes = sizeof config;
    config.groups = &group;
    config.group_count = 1;
    config.page_count = 8;
    config.batch_slots = config.request_max = 2;
    config.context_limit = 16;
    config.step_tokens_max = 8;
    config.overcommit = 2;
    config.fill_qkv = fill_nothing;
  }
};

class EveryPluginAsked : public ::testing::TestWithParam<const char*> {
 protected:
  const kv_engine_level& level() const { return *load_plugin(GetParam()).engine; }
  /// What supports and create say, which must be the same.
  kv_status answer(kv_engine_config config, const kv_attention_shape* shape) {
    config.shape = shape;
    why.text[0] = '\0';
    const kv_status said = level().supports(&config, &why);
    kv_engine* engine = nullptr;
    EXPECT_EQ(level().create(&config, &engine, &why), said);
    EXPECT_EQ(engine != nullptr, said == KV_OK);
    if (engine != nullptr) level().destroy(engine);
    return said;
  }
  kv_error why = {.struct_bytes = sizeof(kv_error), .text = ""};
};
INSTANTIATE_TEST_SUITE_P(Engine, EveryPluginAsked,
                         ::testing::Values("libkvattn_host_plugin.so", "libkvattn_plugin.so"),
                         [](const auto& info) {
                           return std::string(info.param).find("host") == std::string::npos
                                      ? "cuda"
                                      : "host";
                         });

// Fails when one of them is accepted: a step would then turn what lies behind a row, or by NaN.
TEST_P(EveryPluginAsked, RefusesWhatIsNoRope) {
  const Asked asked;
  EXPECT_EQ(answer(asked.config, &asked.shape), KV_OK) << why.text;
  using Spoil = void (*)(kv_attention_shape&);
  for (Spoil spoil : {Spoil([](kv_attention_shape& s) { s.rope = 3; }),
                      Spoil([](kv_attention_shape& s) { s.rope = 256 + KV_ROPE_NEOX; }),
                      Spoil([](kv_attention_shape& s) { s.rope = KV_ROPE_NONE; }),
                      Spoil([](kv_attention_shape& s) { s.rope_dims = 0; }),
                      Spoil([](kv_attention_shape& s) { s.rope_dims = 3; }),
                      Spoil([](kv_attention_shape& s) { s.rope_dims = 10; }),
                      Spoil([](kv_attention_shape& s) { s.rope_dims = 100000; }),
                      Spoil([](kv_attention_shape& s) { s.rope_theta = NAN; }),
                      Spoil([](kv_attention_shape& s) { s.rope_theta = INFINITY; }),
                      Spoil([](kv_attention_shape& s) { s.rope_theta = 0; })}) {
    kv_attention_shape shape = asked.shape;
    spoil(shape);
    EXPECT_EQ(answer(asked.config, &shape), KV_REFUSED)
        << "rope " << shape.rope << ", " << shape.rope_dims << " dimensions, theta "
        << shape.rope_theta;
    EXPECT_NE(std::strstr(why.text, "RoPE"), nullptr) << why.text;
  }
}

// Fails when query heads are left without a KV head of their own.
TEST_P(EveryPluginAsked, RefusesHeadsThatDoNotDivide) {
  const Asked asked;
  for (const auto& [query_heads, kv_heads] : {std::pair(3u, 2u), {0u, 2u}, {2u, 0u}, {1u, 2u}}) {
    kv_attention_shape shape = asked.shape;
    shape.query_heads = query_heads;
    shape.kv_heads = kv_heads;
    EXPECT_EQ(answer(asked.config, &shape), KV_REFUSED) << query_heads << " over " << kv_heads;
    EXPECT_NE(std::strstr(why.text, "heads"), nullptr) << why.text;
  }
}

// Crashes when products of sizes overflow, or when more than any machine has is asked for.
TEST_P(EveryPluginAsked, TurnsDownSizesBeyondAnyMachine) {
  constexpr uint32_t kHuge = 0x7fffffff;
  using Grow = void (*)(Asked&);
  for (Grow grow : {Grow([](Asked& a) { a.shape.head_dim_k = a.shape.head_dim_v = kHuge; }),
                    Grow([](Asked& a) { a.shape.head_dim_k = a.shape.head_dim_v = 0; }),
                    Grow([](Asked& a) { a.shape.query_heads = a.shape.kv_heads = 1u << 31; }),
                    Grow([](Asked& a) { a.shape.page_slots = 1u << 31; }),
                    Grow([](Asked& a) { a.group.layers = kHuge; }),
                    Grow([](Asked& a) { a.group.layers = 0xffffffff; }),
                    Grow([](Asked& a) { a.config.page_count = kHuge, a.group.layers = 1u << 20; }),
                    Grow([](Asked& a) {
                      a.config.batch_slots = a.config.step_tokens_max = a.config.request_max =
                          kHuge;
                    })}) {
    Asked asked;
    grow(asked);
    asked.config.groups = &asked.group;
    EXPECT_NE(answer(asked.config, &asked.shape), KV_OK);
    EXPECT_STRNE(why.text, "");
  }
}

// Crashes when a byte of a shape is read that its struct_bytes does not count.
TEST_P(EveryPluginAsked, ReadsNothingBehindAShortShape) {
  constexpr size_t kShort = 64;
  const Asked asked;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const pages =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<char*>(pages) + page, page, PROT_NONE), 0);
  char* const at = static_cast<char*>(pages) + page - kShort;
  std::memcpy(at, &asked.shape, kShort);
  const uint32_t bytes = kShort;
  std::memcpy(at, &bytes, sizeof bytes);
  EXPECT_EQ(answer(asked.config, reinterpret_cast<const kv_attention_shape*>(at)), KV_REFUSED);
  EXPECT_NE(std::strstr(why.text, "shape"), nullptr) << why.text;
  EXPECT_EQ(munmap(pages, 2 * page), 0);
}

}  // namespace
}  // namespace kvattn
