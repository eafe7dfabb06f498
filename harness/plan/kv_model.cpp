#include "harness/plan/kv_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/case/limits.h"
#include "harness/plan/config_reader.h"
#include "harness/plan/layer_kinds.h"

namespace kv {
namespace {

constexpr uint64_t kContextMax = uint64_t{1} << 30;  // a thousand times the longest today

// Members that give a layer more or other K/V than heads times dimension.
constexpr const char* kNotUnderstood[] = {"index_head_dim",
                                          "swa_num_key_value_heads",
                                          "global_head_dim",
                                          "num_global_key_value_heads",
                                          "num_key_value_heads_per_layer",
                                          "num_attention_groups",
                                          "attention_head_dim"};

// Families whose layers keep a state of their own, keep nothing, or keep more than one cache each.
constexpr std::string_view kOtherCaches[] = {
    "mamba", "falcon_mamba", "rwkv",       "retnet",      "xlstm",      "longcat_flash",
    "bert",  "roberta",      "distilbert", "xlm-roberta", "modernbert", "deberta"};

Result<std::optional<DType>> read_dtype(const ConfigReader& reader) {
  const auto key = reader.present({"torch_dtype", "dtype"});
  if (!key) return std::optional<DType>();
  const Json& value = reader.at(*key);
  if (value == "float16") return std::optional(DType::kF16);
  if (value == "bfloat16") return std::optional(DType::kBf16);
  if (value == "float32") return std::optional(DType::kF32);
  return reader.error(*key, R"("float16", "bfloat16" or "float32")");
}

// Of a cache whose scales came with the weights: {"num_bits": 8, "type": "float"}.
Result<std::optional<DType>> read_cache_scheme(const ConfigReader& reader) {
  KV_ASSIGN_OR_RETURN(const auto scheme, reader.part("kv_cache_scheme"));
  if (!scheme) return std::optional<DType>();
  KV_ASSIGN_OR_RETURN(const uint64_t bits, scheme->count({"num_bits"}, 64));
  const std::string type = scheme->word("type", "");
  if (bits == 8 && type == "float") return std::optional(DType::kE4m3);
  if (bits == 8 && type == "int") return std::optional(DType::kI8);
  return reader.error("kv_cache_scheme", R"(8 bits of type "float" or "int")");
}

Result<std::optional<DType>> read_kv_dtype(const ConfigReader& reader) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    KV_ASSIGN_OR_RETURN(const auto part, reader.part(key));
    if (!part) continue;
    KV_ASSIGN_OR_RETURN(const auto scheme, read_cache_scheme(*part));
    if (scheme) return scheme;
    if (!part->present({"kv_cache_quant_algo"})) continue;
    const std::string algorithm = part->word("kv_cache_quant_algo", "");
    if (algorithm == "FP8") return std::optional(DType::kE4m3);
    if (algorithm == "INT8") return std::optional(DType::kI8);
    return part->error("kv_cache_quant_algo", R"("FP8" or "INT8")");
  }
  return read_cache_scheme(reader);
}

// One KV head for all, in the ways of MPT and DBRX ("attn_config"), ChatGLM, Falcon and others.
Result<uint64_t> read_kv_heads(const ConfigReader& reader, uint64_t query_heads) {
  KV_ASSIGN_OR_RETURN(const auto parted, reader.part("attn_config"));
  if (parted) {
    KV_ASSIGN_OR_RETURN(const auto heads,
                        parted->optional_count({"kv_n_heads"}, limits::kHeadsMax));
    if (heads) return *heads;
    return parted->word("attn_type", "") == "multiquery_attention" ? 1 : query_heads;
  }
  KV_ASSIGN_OR_RETURN(const auto heads, reader.optional_count({"num_key_value_heads", "n_head_kv",
                                                               "num_kv_heads", "n_kv_heads"},
                                                              limits::kHeadsMax));
  KV_ASSIGN_OR_RETURN(const auto groups, reader.optional_flag("multi_query_attention"));
  if (groups.value_or(false)) return reader.count({"multi_query_group_num"}, limits::kHeadsMax);
  KV_ASSIGN_OR_RETURN(const auto one, reader.optional_flag("multi_query"));
  KV_ASSIGN_OR_RETURN(const auto grouped, reader.optional_flag("new_decoder_architecture"));
  // Falcon: several heads in the new architecture only, whatever the number says.
  if (one.value_or(false) && !grouped.value_or(false)) return uint64_t{1};
  if (grouped.value_or(false) && !heads) {
    return reader.error("num_kv_heads", "an integer beside new_decoder_architecture", "nothing");
  }
  return heads.value_or(query_heads);
}

/// What a family's configuration class takes where a file leaves head_dim out; 0: heads share
/// hidden.
uint64_t head_dim_of_family(std::string_view type) {
  if (type.starts_with("gemma")) return 256;
  return type.starts_with("qwen3") ? 128 : 0;
}

Result<uint64_t> read_head_dim(const ConfigReader& reader, std::string_view type,
                               uint64_t query_heads) {
  KV_ASSIGN_OR_RETURN(const auto dim, reader.optional_count({"head_dim", "kv_channels", "d_kv"},
                                                            limits::kHeadDimMax));
  if (dim) return *dim;
  if (const uint64_t usual = head_dim_of_family(type)) return usual;
  KV_ASSIGN_OR_RETURN(const uint64_t hidden,
                      reader.count({"hidden_size", "n_embd", "d_model", "n_embed"},
                                   uint64_t{limits::kHeadsMax} * limits::kHeadDimMax));
  if (hidden % query_heads == 0 && hidden / query_heads <= limits::kHeadDimMax) {
    return hidden / query_heads;
  }
  return reader.error("hidden_size",
                      fmt::format("a multiple of {} heads of at most {}, or a head_dim",
                                  query_heads, limits::kHeadDimMax),
                      fmt::to_string(hidden));
}

Result<void> read_heads(const ConfigReader& reader, KvModel& model) {
  for (const char* key : kNotUnderstood) {
    if (reader.present({key})) {
      return reader.error(key, "no such member: what it adds to the cache is not understood");
    }
  }
  KV_ASSIGN_OR_RETURN(
      const uint64_t query_heads,
      reader.count({"num_attention_heads", "n_head", "n_heads", "num_heads"}, limits::kHeadsMax));
  KV_ASSIGN_OR_RETURN(const uint64_t kv_heads, read_kv_heads(reader, query_heads));
  if (query_heads % kv_heads != 0) {
    return reader.error("num_key_value_heads", fmt::format("a divisor of {} heads", query_heads),
                        fmt::to_string(kv_heads));
  }
  KV_ASSIGN_OR_RETURN(const uint64_t dim, read_head_dim(reader, model.type, query_heads));
  KV_ASSIGN_OR_RETURN(const auto value_dim,
                      reader.optional_count({"v_head_dim"}, limits::kHeadDimMax));
  model.query_heads = static_cast<uint32_t>(query_heads);
  model.kv_heads = static_cast<uint32_t>(kv_heads);
  model.head_dim_k = static_cast<uint32_t>(dim);
  model.head_dim_v = static_cast<uint32_t>(value_dim.value_or(dim));
  return {};
}

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): c_KV and k^R.
Result<void> read_latent(const ConfigReader& reader, KvModel& model) {
  if (!reader.present({"kv_lora_rank"})) return {};
  KV_ASSIGN_OR_RETURN(const uint64_t rank, reader.count({"kv_lora_rank"}, 1u << 16));
  KV_ASSIGN_OR_RETURN(const uint64_t rotated, reader.count({"qk_rope_head_dim"}, 1u << 16));
  model.latent_dim = static_cast<uint32_t>(rank + rotated);
  return {};
}

// The part that describes the language model; the config itself where there is none.
const Json& language_part(const Json& config) {
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    if (!config.contains(key) || !config[key].is_object()) continue;
    const ConfigReader part(config[key], "");
    if (part.present({"num_hidden_layers", "n_layer", "num_layers", "n_layers"})) {
      return config[key];
    }
  }
  return config;
}

Result<void> refuse_encoders(const ConfigReader& reader) {
  KV_ASSIGN_OR_RETURN(const auto encodes, reader.optional_flag("is_encoder_decoder"));
  if (!encodes.value_or(false)) return {};
  return reader.error("is_encoder_decoder",
                      "false: the cache of cross-attention over an encoder is not modelled");
}

Result<void> refuse_other_caches(const ConfigReader& reader, const std::string& type) {
  for (const std::string_view other : kOtherCaches) {
    if (type.starts_with(other)) {
      return reader.error("model_type",
                          "a model whose layers keep one K/V cache each, or none where layer_types "
                          "says so");
    }
  }
  return {};
}

}  // namespace

uint32_t KvModel::layers() const {
  uint32_t sum = 0;
  for (const LayerGroup& group : groups) sum += group.layers;
  return sum;
}

bool KvModel::has_windows() const {
  return std::any_of(groups.begin(), groups.end(),
                     [](const LayerGroup& group) { return group.window_slots > 0; });
}

Result<KvModel> read_kv_model(std::string_view text, std::string_view name) {
  const auto tree = parse_json(text);
  if (!tree.ok()) return bad_input(fmt::format("{}: {}", name, tree.error().message));
  if (!tree->is_object()) {
    return bad_input(fmt::format("{}: expected one JSON object, got {}", name, preview(*tree)));
  }
  const ConfigReader outer(*tree, name), reader(language_part(*tree), name);
  KV_RETURN_IF_ERROR(refuse_encoders(outer));
  KV_RETURN_IF_ERROR(refuse_encoders(reader));
  KvModel model;
  model.type = reader.word("model_type", "model");
  KV_RETURN_IF_ERROR(refuse_other_caches(reader, model.type));
  KV_ASSIGN_OR_RETURN(LayerKinds layers, read_layer_kinds(reader, model.type));
  model.groups = std::move(layers.groups);
  model.without_cache = layers.without_cache;
  KV_RETURN_IF_ERROR(read_heads(reader, model));
  KV_RETURN_IF_ERROR(read_latent(reader, model));
  KV_ASSIGN_OR_RETURN(const auto inner_dtype, read_dtype(reader));
  KV_ASSIGN_OR_RETURN(const auto outer_dtype, read_dtype(outer));
  model.dtype = inner_dtype ? inner_dtype : outer_dtype;
  KV_ASSIGN_OR_RETURN(const auto inner_cache, read_kv_dtype(reader));
  KV_ASSIGN_OR_RETURN(const auto outer_cache, read_kv_dtype(outer));
  model.kv_dtype = inner_cache ? inner_cache : outer_cache;
  KV_ASSIGN_OR_RETURN(const auto context,
                      reader.optional_count({"max_position_embeddings", "n_positions", "n_ctx",
                                             "max_sequence_length", "max_seq_len", "seq_length"},
                                            kContextMax));
  model.context_limit = context.value_or(0);
  return model;
}

}  // namespace kv
