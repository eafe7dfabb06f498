#include "harness/plan/kv_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "harness/case/json_tree.h"
#include "harness/case/limits.h"

namespace kv {
namespace {

constexpr uint64_t kContextMax = uint64_t{1} << 30;  // a thousand times the longest today
constexpr size_t kTypeBytesMax = 64;

// One JSON object, read by name; the first thing that is wrong with it.
class ConfigReader {
 public:
  ConfigReader(const Json& config, std::string_view name) : config_(config), name_(name) {}

  Error error(const char* key, const std::string& expected, const std::string& got) const {
    return bad_input(fmt::format("{}: {}: expected {}, got {}", name_, key, expected, got));
  }

  /// The first of the names that the config has and that is not null.
  std::optional<const char*> present(std::initializer_list<const char*> keys) const {
    for (const char* key : keys) {
      if (config_.contains(key) && !config_[key].is_null()) return key;
    }
    return std::nullopt;
  }
  const Json& at(const char* key) const { return config_[key]; }

  /// Nothing when none of the names is there.
  Result<std::optional<uint64_t>> optional_count(std::initializer_list<const char*> keys,
                                                 uint64_t max) const {
    const auto key = present(keys);
    if (!key) return std::optional<uint64_t>();
    const Json& value = config_[*key];
    const bool whole = value.is_number_unsigned();
    if (!whole || value.get<uint64_t>() < 1 || value.get<uint64_t>() > max) {
      return error(*key, fmt::format("an integer from 1 to {}", max), preview(value));
    }
    return std::optional<uint64_t>(value.get<uint64_t>());
  }
  Result<uint64_t> count(std::initializer_list<const char*> keys, uint64_t max) const {
    KV_ASSIGN_OR_RETURN(const auto value, optional_count(keys, max));
    if (!value) {
      return error(*keys.begin(), fmt::format("an integer from 1 to {}", max), "nothing");
    }
    return *value;
  }
  Result<std::optional<bool>> optional_flag(const char* key) const {
    if (!present({key})) return std::optional<bool>();
    if (!config_[key].is_boolean()) return error(key, "true or false", preview(config_[key]));
    return std::optional<bool>(config_[key].get<bool>());
  }

 private:
  const Json& config_;
  std::string_view name_;
};

Result<DType> read_dtype(const ConfigReader& reader) {
  const auto key = reader.present({"torch_dtype", "dtype"});
  if (!key) return reader.error("torch_dtype", "a number format", "nothing");
  const Json& value = reader.at(*key);
  if (value == "float16") return DType::kF16;
  if (value == "bfloat16") return DType::kBf16;
  if (value == "float32") return DType::kF32;
  return reader.error(*key, R"("float16", "bfloat16" or "float32")", preview(value));
}

std::string read_type(const ConfigReader& reader) {
  if (!reader.present({"model_type"}) || !reader.at("model_type").is_string()) return "model";
  std::string type = reader.at("model_type").get<std::string>().substr(0, kTypeBytesMax);
  std::replace_if(
      type.begin(), type.end(), [](char c) { return c < 0x20 || c > 0x7E; }, '?');
  return type;
}

Result<void> read_heads(const ConfigReader& reader, KvModel& model) {
  const auto heads = [&](auto keys) { return reader.count(keys, limits::kHeadsMax); };
  using Names = std::initializer_list<const char*>;
  KV_ASSIGN_OR_RETURN(const uint64_t query_heads,
                      heads(Names{"num_attention_heads", "n_head", "n_heads"}));
  KV_ASSIGN_OR_RETURN(auto kv_heads, reader.optional_count({"num_key_value_heads", "n_head_kv"},
                                                           limits::kHeadsMax));
  KV_ASSIGN_OR_RETURN(const auto multi_query, reader.optional_flag("multi_query"));
  if (!kv_heads) kv_heads = multi_query.value_or(false) ? 1 : query_heads;
  if (query_heads % *kv_heads != 0) {
    return reader.error("num_key_value_heads", fmt::format("a divisor of {} heads", query_heads),
                        fmt::to_string(*kv_heads));
  }
  model.query_heads = static_cast<uint32_t>(query_heads);
  model.kv_heads = static_cast<uint32_t>(*kv_heads);
  KV_ASSIGN_OR_RETURN(auto dim, reader.optional_count({"head_dim"}, limits::kHeadDimMax));
  if (!dim) {
    KV_ASSIGN_OR_RETURN(const uint64_t hidden,
                        reader.count({"hidden_size", "n_embd", "d_model"},
                                     uint64_t{limits::kHeadsMax} * limits::kHeadDimMax));
    if (hidden % query_heads != 0 || hidden / query_heads > limits::kHeadDimMax) {
      return reader.error("hidden_size",
                          fmt::format("a multiple of {} heads of at most {}, or a head_dim",
                                      query_heads, limits::kHeadDimMax),
                          fmt::to_string(hidden));
    }
    dim = hidden / query_heads;
  }
  model.head_dim_k = model.head_dim_v = static_cast<uint32_t>(*dim);
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

// Is layer `i` a windowed one, as the config's family says it?
Result<std::vector<bool>> windowed_layers(const ConfigReader& reader, uint64_t layers) {
  std::vector<bool> windowed(layers, true);
  if (reader.present({"layer_types"})) {
    const Json& types = reader.at("layer_types");
    if (!types.is_array() || types.size() != layers) {
      return reader.error("layer_types", fmt::format("a list of {} names", layers), preview(types));
    }
    for (size_t i = 0; i < layers; ++i) {
      if (types[i] != "sliding_attention" && types[i] != "full_attention") {
        return reader.error("layer_types", R"("full_attention" or "sliding_attention")",
                            preview(types[i]));
      }
      windowed[i] = types[i] == "sliding_attention";
    }
    return windowed;
  }
  KV_ASSIGN_OR_RETURN(const auto pattern,
                      reader.optional_count({"sliding_window_pattern"}, limits::kLayersMax));
  if (pattern) {  // every pattern-th layer is full
    for (size_t i = 0; i < layers; ++i) windowed[i] = (i + 1) % *pattern != 0;
    return windowed;
  }
  KV_ASSIGN_OR_RETURN(const auto used, reader.optional_flag("use_sliding_window"));
  if (used.has_value() && reader.present({"max_window_layers"})) {  // the layers below are full
    const Json& full = reader.at("max_window_layers");
    if (!full.is_number_unsigned()) {
      return reader.error("max_window_layers", "an integer from 0", preview(full));
    }
    for (size_t i = 0; i < layers; ++i) windowed[i] = i >= full.get<uint64_t>();
  }
  if (!used.value_or(true)) windowed.assign(layers, false);
  return windowed;
}

Result<void> read_layers(const ConfigReader& reader, KvModel& model) {
  KV_ASSIGN_OR_RETURN(
      const uint64_t layers,
      reader.count({"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, limits::kLayersMax));
  KV_ASSIGN_OR_RETURN(const auto window, reader.optional_count({"sliding_window"}, kContextMax));
  if (!window) {
    model.groups = {{.layers = static_cast<uint32_t>(layers)}};
    return {};
  }
  KV_ASSIGN_OR_RETURN(const std::vector<bool> windowed, windowed_layers(reader, layers));
  const auto narrow = static_cast<uint32_t>(std::count(windowed.begin(), windowed.end(), true));
  const uint32_t full = static_cast<uint32_t>(layers) - narrow;
  if (full > 0) model.groups.push_back({.layers = full});
  if (narrow > 0) model.groups.push_back({.layers = narrow, .window_slots = *window});
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
  const bool nested = tree->contains("text_config") && (*tree)["text_config"].is_object();
  const ConfigReader reader(nested ? (*tree)["text_config"] : *tree, name);
  KvModel model;
  model.type = read_type(reader);
  KV_RETURN_IF_ERROR(read_layers(reader, model));
  KV_RETURN_IF_ERROR(read_heads(reader, model));
  KV_RETURN_IF_ERROR(read_latent(reader, model));
  const ConfigReader outer(*tree, name);
  const bool inside = reader.present({"torch_dtype", "dtype"}).has_value();
  KV_ASSIGN_OR_RETURN(model.dtype, read_dtype(inside ? reader : outer));
  KV_ASSIGN_OR_RETURN(const auto context,
                      reader.optional_count({"max_position_embeddings", "n_positions",
                                             "max_sequence_length", "max_seq_len"},
                                            kContextMax));
  model.context_limit = context.value_or(0);
  return model;
}

}  // namespace kv
