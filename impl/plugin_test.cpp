// The plugin through its ABI: what it says of itself, one batch, and what it turns down.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

#include "harness/plugin/kverify_plugin.h"
#include "impl/serving_test.h"

namespace kvattn {
namespace {

using namespace kvattn::testing;

const kv_plugin& plugin() {
  static const kv_plugin* loaded = [] {
    void* library = dlopen(KV_BUILD_DIR "/lib/libkvattn_plugin.so", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<const kv_plugin* (*)()>(dlsym(library, "kverify_plugin_v1"))();
  }();
  return *loaded;
}

kv_attention_shape lawful_shape() {
  const DLDataType f32 = {kDLFloat, 32, 1};
  kv_attention_shape shape = {};
  shape.struct_bytes = sizeof shape;
  shape.query_heads = shape.kv_heads = 1;
  shape.head_dim_k = shape.head_dim_v = 64;
  shape.page_slots = 16;
  shape.query_dtype = shape.kv_dtype = shape.output_dtype = f32;
  shape.scale = 0.125f;
  shape.causal = KV_CAUSAL_BOTTOM_RIGHT;
  shape.window_left = shape.window_right = -1;
  return shape;
}

TEST(Plugin, DeclaresItsConventions) {
  EXPECT_EQ(plugin().abi, static_cast<uint32_t>(KV_PLUGIN_ABI));
  EXPECT_STREQ(plugin().name, "kvattn");
  EXPECT_EQ(plugin().conventions.lse_base, static_cast<uint32_t>(KV_LSE_NATURAL));
  ASSERT_NE(plugin().kernel, nullptr);
  EXPECT_NE(plugin().engine, nullptr);
}

TEST(Plugin, SaysWhatItDoesNotOffer) {
  kv_error why = {.struct_bytes = sizeof why, .text = ""};
  kv_attention_shape shape = lawful_shape();
  EXPECT_EQ(plugin().kernel->supports(&shape, &why), KV_OK);
  using Spoil = void (*)(kv_attention_shape&);
  for (Spoil spoil : {Spoil([](kv_attention_shape& s) { s.head_dim_v = 264; }),
                      Spoil([](kv_attention_shape& s) { s.kv_scale = KV_SCALE_HEAD; }),
                      Spoil([](kv_attention_shape& s) { s.mask_encoding = KV_MASK_ADDITIVE; }),
                      Spoil([](kv_attention_shape& s) { s.padding = KV_PAD_HOLES; }),
                      Spoil([](kv_attention_shape& s) { s.kv_dtype.bits = 8; }),
                      Spoil([](kv_attention_shape& s) { s.output_dtype.bits = 16; })}) {
    shape = lawful_shape();
    spoil(shape);
    why.text[0] = '\0';
    EXPECT_EQ(plugin().kernel->supports(&shape, &why), KV_UNSUPPORTED);
    EXPECT_STRNE(why.text, "");
  }
  shape = lawful_shape();
  shape.struct_bytes = 8;
  EXPECT_EQ(plugin().kernel->supports(&shape, &why), KV_REFUSED);
}

/// A DLPack tensor with its own sizes.
struct Tensor {
  std::vector<int64_t> shape, strides;
  DeviceMemory memory;
  DLDataType dtype;

  DLTensor view() {
    strides.assign(shape.size(), 1);
    for (size_t i = shape.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * shape[i];
    return {memory.get(),
            {kDLCUDA, 0},
            static_cast<int32_t>(shape.size()),
            dtype,
            shape.data(),
            strides.data(),
            0};
  }
};
Tensor floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  return {std::move(shape), {}, upload(values), {kDLFloat, 32, 1}};
}
Tensor ints(std::vector<int64_t> shape, const std::vector<int32_t>& values) {
  return {std::move(shape), {}, upload(values), {kDLInt, 32, 1}};
}

// Two tokens whose scores are equal: the second query's output is the mean of the values.
TEST(Plugin, RunsABatch) {
  const kv_attention_shape shape = lawful_shape();
  const int32_t two = 2;
  const kv_batch batch = {sizeof batch, 1, &two, &two, 0, nullptr};
  kv_plan plan = {};
  plan.struct_bytes = sizeof plan;
  kv_error why = {.struct_bytes = sizeof why, .text = ""};
  ASSERT_EQ(plugin().kernel->plan(&shape, &batch, &plan, &why), KV_OK) << why.text;

  std::vector<float> values(128, 2.0f);
  std::fill_n(values.begin(), 64, 6.0f);
  Tensor key_cache = floats({3, 16, 1, 64}, std::vector<float>(3 * 16 * 64)),
         value_cache = floats({3, 16, 1, 64}, std::vector<float>(3 * 16 * 64, NAN)),
         table = ints({1, 1}, {2}), key = floats({2, 1, 64}, std::vector<float>(128)),
         value = floats({2, 1, 64}, values), offsets = ints({2}, {0, 2}), zero = ints({1}, {0}),
         lengths = ints({1}, {2}), output = floats({2, 1, 64}, std::vector<float>(128)),
         lse = floats({2, 1}, {0, 0});
  kv_append_args append = {};
  append.struct_bytes = sizeof append;
  append.shape = &shape;
  append.cache = {sizeof append.cache, key_cache.view(), value_cache.view(),
                  table.view(),        nullptr,          nullptr};
  append.key = key.view();
  append.value = value.view();
  append.token_offsets = offsets.view();
  append.first_slots = zero.view();
  ASSERT_EQ(plugin().kernel->append(&append, &why), KV_OK) << why.text;

  kv_attend_args attend = {};
  attend.struct_bytes = sizeof attend;
  attend.shape = &shape;
  attend.plan = &plan;
  attend.cache = append.cache;
  attend.query = key.view();
  attend.query_offsets = offsets.view();
  attend.kv_lengths = attend.key_end = lengths.view();
  attend.key_begin = zero.view();
  attend.output = output.view();
  attend.lse = lse.view();
  ASSERT_EQ(plugin().kernel->attend(&attend, &why), KV_OK) << why.text;
  check(cudaDeviceSynchronize());
  const std::vector<float> got = download<float>(output.memory, 128);
  EXPECT_EQ(got[0], 6.0f);
  EXPECT_EQ(got[64], 4.0f);
  EXPECT_NEAR(download<float>(lse.memory, 2)[1], std::log(2.0), 1e-6);

  kv_attention_shape with_sinks = shape;
  with_sinks.sinks = 1;
  attend.shape = &with_sinks;
  EXPECT_EQ(plugin().kernel->attend(&attend, &why), KV_REFUSED);
  EXPECT_NE(std::strstr(why.text, "sinks"), nullptr) << why.text;
  attend.shape = &shape;

  attend.output.device.device_type = kDLCPU;
  EXPECT_EQ(plugin().kernel->attend(&attend, &why), KV_REFUSED);
  EXPECT_NE(std::strstr(why.text, "output"), nullptr) << why.text;
}

}  // namespace
}  // namespace kvattn
