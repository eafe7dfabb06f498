// What the config.json of each family of models says of its cache: the members as the published
// files have them, with numbers of one model of the family.
#include <gtest/gtest.h>

#include "harness/plan/kv_model.h"

namespace kv {
namespace {

struct Family {
  const char* name;
  const char* config;
  uint32_t kv_heads, head_dim;
  std::vector<LayerGroup> groups;
  uint32_t without_cache = 0;
};

void expect_understood(const std::vector<Family>& families) {
  for (const Family& f : families) {
    const auto model = read_kv_model(f.config, f.name);
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ(model->kv_heads, f.kv_heads) << f.name;
    EXPECT_EQ(model->head_dim_k, f.head_dim) << f.name;
    EXPECT_EQ(model->groups, f.groups) << f.name;
    EXPECT_EQ(model->without_cache, f.without_cache) << f.name;
  }
}

void expect_refused(const std::vector<std::pair<const char*, const char*>>& configs) {
  for (const auto& [config, begins] : configs) {
    const auto model = read_kv_model(config, "c");
    ASSERT_FALSE(model.ok()) << config;
    EXPECT_EQ(model.error().kind, ErrorKind::kBadInput);
    EXPECT_EQ(model.error().message.rfind(begins, 0), 0u) << model.error().message;
  }
}

// Kills: a family's own name for a number of heads or a dimension, passed over.
TEST(Families, HeadsHaveManyNames) {
  expect_understood(
      {{"llama 3",
        R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "torch_dtype": "bfloat16",
        "max_position_embeddings": 131072,
        "rope_scaling": {"factor": 8.0, "rope_type": "llama3"}})",
        8,
        128,
        {{32, 0}}},
       {"gpt2",
        R"({"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768,
        "n_ctx": 1024, "n_positions": 1024})",
        12,
        64,
        {{12, 0}}},
       {"gpt_neox",
        R"({"model_type": "gpt_neox", "num_hidden_layers": 44, "num_attention_heads": 64,
        "hidden_size": 6144, "max_position_embeddings": 2048, "torch_dtype": "float16"})",
        64,
        96,
        {{44, 0}}},
       {"bloom",
        R"({"model_type": "bloom", "n_layer": 70, "n_head": 112, "n_embed": 14336})",
        112,
        128,
        {{70, 0}}},
       {"falcon 7b",
        R"({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
        "num_attention_heads": 71, "num_kv_heads": 71, "multi_query": true,
        "new_decoder_architecture": false})",
        1,
        64,
        {{32, 0}}},
       {"falcon 40b",
        R"({"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60,
        "num_attention_heads": 128, "num_kv_heads": 8, "multi_query": true,
        "new_decoder_architecture": true})",
        8,
        64,
        {{60, 0}}},
       {"falcon 40b, first release",
        R"({"model_type": "RefinedWeb", "hidden_size": 8192,
        "n_layer": 60, "n_head": 128, "n_head_kv": 8, "new_decoder_architecture": true})",
        8,
        64,
        {{60, 0}}},
       {"starcoder",
        R"({"model_type": "gpt_bigcode", "n_layer": 40, "n_head": 48, "n_embd": 6144,
        "multi_query": true})",
        1,
        128,
        {{40, 0}}}});
}

TEST(Families, HeadsAreNamedInPartsToo) {
  expect_understood({{"mpt",
                      R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32,
        "max_seq_len": 2048, "attn_config": {"attn_type": "multihead_attention"}})",
                      32,
                      128,
                      {{32, 0}}},
                     {"dbrx",
                      R"({"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40,
        "attn_config": {"kv_n_heads": 8, "rope_theta": 500000}})",
                      8,
                      128,
                      {{40, 0}}},
                     {"chatglm",
                      R"({"model_type": "chatglm", "num_layers": 28, "num_attention_heads": 32,
        "hidden_size": 4096, "kv_channels": 128, "multi_query_attention": true,
        "multi_query_group_num": 2, "seq_length": 131072})",
                      2,
                      128,
                      {{28, 0}}},
                     {"mixtral",
                      R"({"model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096,
        "num_attention_heads": 32, "num_key_value_heads": 8, "sliding_window": null})",
                      8,
                      128,
                      {{32, 0}}},
                     {"multimodal",
                      R"({"model_type": "llava", "torch_dtype": "float16", "vision_config":
        {"num_hidden_layers": 24}, "text_config": {"model_type": "llama", "num_hidden_layers": 40,
        "num_attention_heads": 40, "hidden_size": 5120}})",
                      40,
                      128,
                      {{40, 0}}}});
}

// Kills: a window given to all layers, or to none, where some have it.
TEST(Families, WindowsHaveManyPatterns) {
  expect_understood({{"mistral",
                      R"({"model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096,
        "num_attention_heads": 32, "num_key_value_heads": 8, "sliding_window": 4096})",
                      8,
                      128,
                      {{32, 4096}}},
                     {"phi3",
                      R"({"model_type": "phi3", "num_hidden_layers": 32, "hidden_size": 3072,
        "num_attention_heads": 32, "num_key_value_heads": 32, "sliding_window": 2047})",
                      32,
                      96,
                      {{32, 2047}}},
                     {"qwen2",
                      R"({"model_type": "qwen2", "num_hidden_layers": 28, "hidden_size": 3584,
        "num_attention_heads": 28, "num_key_value_heads": 4, "sliding_window": 131072,
        "use_sliding_window": false, "max_window_layers": 28})",
                      4,
                      128,
                      {{28, 0}}},
                     {"qwen2 with windows",
                      R"({"model_type": "qwen2", "num_hidden_layers": 28,
        "hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4,
        "sliding_window": 4096, "use_sliding_window": true, "max_window_layers": 21})",
                      4,
                      128,
                      {{21, 0}, {7, 4096}}},
                     {"gemma2",
                      R"({"model_type": "gemma2", "num_hidden_layers": 42, "head_dim": 256,
        "num_attention_heads": 16, "num_key_value_heads": 8, "sliding_window": 4096})",
                      8,
                      256,
                      {{21, 0}, {21, 4096}}},
                     {"gemma3",
                      R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
        "num_hidden_layers": 62, "head_dim": 128, "num_attention_heads": 32,
        "num_key_value_heads": 16, "sliding_window": 1024}, "torch_dtype": "bfloat16"})",
                      16,
                      128,
                      {{10, 0}, {52, 1024}}},
                     {"cohere2",
                      R"({"model_type": "cohere2", "num_hidden_layers": 32, "hidden_size": 4096,
        "num_attention_heads": 32, "num_key_value_heads": 8, "sliding_window": 4096,
        "sliding_window_pattern": 4})",
                      8,
                      128,
                      {{8, 0}, {24, 4096}}},
                     {"gpt_oss",
                      R"({"model_type": "gpt_oss", "num_hidden_layers": 4, "head_dim": 64,
        "num_attention_heads": 64, "num_key_value_heads": 8, "sliding_window": 128, "layer_types":
        ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]})",
                      8,
                      64,
                      {{2, 0}, {2, 128}}},
                     {"llama4",
                      R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text",
        "num_hidden_layers": 48, "head_dim": 128, "num_attention_heads": 40,
        "num_key_value_heads": 8, "attention_chunk_size": 8192, "no_rope_layers": []}})",
                      8,
                      128,
                      {{12, 0}, {36, 8192}}}});
}

// Kills: a cache counted for layers that have none, or one that they share counted again.
TEST(Families, SomeLayersHaveNoCache) {
  expect_understood({{"qwen3_next",
                      R"({"model_type": "qwen3_next", "num_hidden_layers": 48, "head_dim": 256,
        "num_attention_heads": 16, "num_key_value_heads": 2, "full_attention_interval": 4,
        "linear_num_value_heads": 32})",
                      2,
                      256,
                      {{12, 0}},
                      36},
                     {"layer_types",
                      R"({"num_hidden_layers": 4, "head_dim": 64, "num_attention_heads": 8,
        "layer_types": ["linear_attention", "mamba", "conv", "full_attention"]})",
                      8,
                      64,
                      {{1, 0}},
                      3},
                     {"jamba",
                      R"({"model_type": "jamba", "num_hidden_layers": 32, "hidden_size": 4096,
        "num_attention_heads": 32, "num_key_value_heads": 8, "attn_layer_period": 8,
        "attn_layer_offset": 4})",
                      8,
                      128,
                      {{4, 0}},
                      28},
                     {"bamba",
                      R"({"model_type": "bamba", "num_hidden_layers": 32, "hidden_size": 4096,
        "num_attention_heads": 32, "num_key_value_heads": 8, "attn_layer_indices": [9, 18, 27]})",
                      8,
                      128,
                      {{3, 0}},
                      29},
                     {"minimax",
                      R"({"model_type": "minimax", "num_hidden_layers": 4, "head_dim": 128,
        "num_attention_heads": 64, "num_key_value_heads": 8, "attn_type_list": [0, 0, 0, 1]})",
                      8,
                      128,
                      {{1, 0}},
                      3},
                     {"gemma3n",
                      R"({"model_type": "gemma3n", "text_config": {"model_type": "gemma3n_text",
        "num_hidden_layers": 5, "head_dim": 256, "num_attention_heads": 8,
        "num_key_value_heads": 2, "sliding_window": 512, "num_kv_shared_layers": 2, "layer_types":
        ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
        "full_attention"]}})",
                      2,
                      256,
                      {{1, 0}, {2, 512}},
                      2}});
}

// Kills: a latent vector counted as heads, and heads of V as wide as those of K.
TEST(Families, LatentVectorsAndNarrowValues) {
  const auto latent = read_kv_model(
      R"({"model_type": "deepseek_v2", "num_hidden_layers": 60, "num_attention_heads": 128,
          "num_key_value_heads": 128, "hidden_size": 5120, "kv_lora_rank": 512,
          "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "head_dim": 64})",
      "deepseek_v2");
  ASSERT_TRUE(latent.ok()) << latent.error().message;
  EXPECT_EQ(latent->latent_dim, 576u);
  const auto narrow = read_kv_model(
      R"({"num_hidden_layers": 2, "num_attention_heads": 8, "head_dim": 192, "v_head_dim": 128})",
      "narrow");
  ASSERT_TRUE(narrow.ok()) << narrow.error().message;
  EXPECT_EQ(narrow->head_dim_k, 192u);
  EXPECT_EQ(narrow->head_dim_v, 128u);
}

// Kills: a cache of 8 bits planned as one of 16.
TEST(Families, AQuantisedModelMaySayTheTypeOfItsCache) {
  const auto type_of = [](const std::string& quantization) {
    const auto model = read_kv_model(
        R"({"num_hidden_layers": 2, "num_attention_heads": 8, "head_dim": 64,
            "torch_dtype": "bfloat16", "quantization_config": )" +
            quantization + "}",
        "q");
    EXPECT_TRUE(model.ok()) << model.error().message;
    return model.ok() ? model->kv_dtype : std::nullopt;
  };
  EXPECT_EQ(type_of(R"({"quant_method": "compressed-tensors", "kv_cache_scheme":
                        {"num_bits": 8, "type": "float", "symmetric": true}})"),
            DType::kE4m3);
  EXPECT_EQ(type_of(R"({"kv_cache_scheme": {"num_bits": 8, "type": "int"}})"), DType::kI8);
  EXPECT_EQ(type_of(R"({"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"})"), DType::kE4m3);
  EXPECT_EQ(type_of(R"({"quant_method": "fp8", "kv_cache_scheme": null})"), std::nullopt);
}

// Kills: hidden size / heads where the family has its own dimension; a list of layers, ignored.
TEST(Families, WhatAFileLeavesOutIsTheFamilys) {
  const auto gemma = read_kv_model(
      R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 3840,
          "num_attention_heads": 16, "num_key_value_heads": 8, "num_hidden_layers": 48,
          "sliding_window": 1024}})",
      "c");
  ASSERT_TRUE(gemma.ok()) << gemma.error().message;
  EXPECT_EQ(gemma->head_dim_k, 256u);
  const auto lfm = read_kv_model(
      R"({"model_type": "lfm2", "hidden_size": 1024, "num_attention_heads": 16,
          "num_hidden_layers": 16, "full_attn_idxs": [2, 5, 8, 10, 12, 14]})",
      "c");
  ASSERT_TRUE(lfm.ok()) << lfm.error().message;
  EXPECT_EQ(lfm->layers(), 6u);
}

// Kills: a member that changes the cache, ignored.
TEST(Families, WhatIsNotUnderstoodIsRefused) {
  const std::string heads = R"("num_attention_heads": 8, "head_dim": 64)";
  const auto with = [&](const std::string& rest) {
    return R"({"num_hidden_layers": 2, )" + heads + ", " + rest + "}";
  };
  std::vector<std::pair<std::string, const char*>> configs = {
      {R"({"model_type": "t5", "is_encoder_decoder": true, "num_layers": 12, "num_heads": 12,
           "d_kv": 64})",
       "c: is_encoder_decoder: expected false"},
      {R"({"model_type": "whisper", "is_encoder_decoder": true, "d_model": 1280,
           "decoder_layers": 32})",
       "c: is_encoder_decoder: expected false"},
      {with(R"("kv_cache_scheme": {"num_bits": 4, "type": "float"})"), "c: kv_cache_scheme: "},
      {with(R"("kv_cache_scheme": 8)"), "c: kv_cache_scheme: expected an object, got 8"},
      {with(R"("quantization_config": {"kv_cache_quant_algo": "NVFP4"})"),
       "c: kv_cache_quant_algo: expected \"FP8\" or \"INT8\", got \"NVFP4\""},
      {with(R"("sliding_window": 64)"),
       "c: sliding_window: expected layer_types or sliding_window_pattern"},
      {with(R"("layer_types": ["sliding_attention", "full_attention"])"),
       "c: sliding_window: expected an integer"},
      {with(R"("layer_types": ["chunked_attention", "full_attention"])"),
       "c: attention_chunk_size: expected an integer"},
      {with(R"("layer_types": ["full_attention", "lightning"])"),
       "c: layer_types: expected one of"},
      {with(R"("layer_types": ["mamba", "mamba"])"), "c: layer_types: expected a layer with"},
      {with(R"("use_sliding_window": true)"), "c: sliding_window: expected a window"},
      {with(R"("use_sliding_window": true, "sliding_window": 4)"),
       "c: max_window_layers: expected"},
      {with(R"("sliding_window": 4, "sliding_window_pattern": "LLLG")"),
       "c: sliding_window_pattern: expected an integer"},
      {with(R"("attn_layer_period": 8)"), "c: attn_layer_offset: expected"},
      {with(R"("attn_layer_indices": [2])"), "c: attn_layer_indices: expected a list"},
      {with(R"("num_kv_shared_layers": 2)"), "c: num_kv_shared_layers: expected"},
      {with(R"("use_cla": true)"), "c: use_cla: expected false"},
      {with(R"("index_head_dim": 128)"), "c: index_head_dim: expected no such member"},
      {with(R"("new_decoder_architecture": true)"), "c: num_kv_heads: expected an integer"}};
  for (const char* type : {"mamba2", "rwkv6", "retnet", "xlstm", "longcat_flash", "bert"}) {
    configs.emplace_back(with(R"("model_type": ")" + std::string(type) + '"'),
                         "c: model_type: expected a model whose layers keep one K/V cache each");
  }
  for (const char* key : {"num_attention_groups", "attention_head_dim", "hybrid_layer_ids",
                          "cross_attention_layers", "hybrid_override_pattern", "block_types",
                          "linear_attn_config", "block_configs", "attention_types"}) {
    configs.emplace_back(with('"' + std::string(key) + R"(": ["M"])"), "c: ");
  }
  std::vector<std::pair<const char*, const char*>> all;
  for (const auto& [config, begins] : configs) all.emplace_back(config.c_str(), begins);
  expect_refused(all);
}

}  // namespace
}  // namespace kv
