#include "harness/plan/layer_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "harness/case/limits.h"

namespace kv {
namespace {

enum class Kind : uint8_t { kFull, kWindow, kChunk, kNoCache };
using Kinds = std::vector<Kind>;
using MaybeKinds = Result<std::optional<Kinds>>;

constexpr uint64_t kWindowSlotsMax = uint64_t{1} << 30;  // a thousand times the longest today

struct NamedKind {
  std::string_view name;
  Kind kind;
};
constexpr NamedKind kNames[] = {{"full_attention", Kind::kFull},
                                {"attention", Kind::kFull},
                                {"sliding_attention", Kind::kWindow},
                                {"chunked_attention", Kind::kChunk},
                                {"linear_attention", Kind::kNoCache},
                                {"mamba", Kind::kNoCache},
                                {"mamba2", Kind::kNoCache},
                                {"recurrent", Kind::kNoCache},
                                {"conv", Kind::kNoCache}};

// Members that change what layers keep, in ways that are not understood here.
constexpr const char* kNotUnderstood[] = {"cross_attention_layers",
                                          "hybrid_override_pattern",
                                          "hybrid_layer_pattern",
                                          "hybrid_layer_ids",
                                          "block_types",
                                          "layers_block_type",
                                          "linear_attn_config",
                                          "block_configs",
                                          "attention_types",
                                          "interleaved_sliding_window",
                                          "global_attn_every_n_layers"};

// All layers have the window.
constexpr std::string_view kAllWindowed[] = {"mistral", "mixtral", "phi3",      "phi3_v",
                                             "phimoe",  "phi4mm",  "starcoder2"};

bool begins_with(const std::string& type, std::string_view begin) {
  return std::string_view(type).substr(0, begin.size()) == begin;
}

// layer_types: a name for each layer.
MaybeKinds by_names(const ConfigReader& reader, uint64_t layers) {
  if (!reader.present({"layer_types"})) return std::optional<Kinds>();
  const Json& types = reader.at("layer_types");
  if (!types.is_array() || types.size() != layers) {
    return reader.error("layer_types", fmt::format("a list of {} names", layers));
  }
  Kinds kinds;
  for (const Json& type : types) {
    const auto named = std::ranges::find_if(
        kNames, [&](const NamedKind& n) { return type == std::string(n.name); });
    if (named == std::end(kNames)) {
      std::string names;
      for (const NamedKind& n : kNames)
        names += fmt::format("{}{}", names.empty() ? "" : ", ", n.name);
      return reader.error("layer_types", "one of " + names, preview(type));
    }
    kinds.push_back(named->kind);
  }
  return std::optional(std::move(kinds));
}

// Some layers attend, the others keep a state: every n-th, or those of a list.
MaybeKinds by_attention(const ConfigReader& reader, uint64_t layers) {
  Kinds kinds(layers, Kind::kNoCache);
  KV_ASSIGN_OR_RETURN(const auto interval,
                      reader.optional_count({"full_attention_interval"}, limits::kLayersMax));
  KV_ASSIGN_OR_RETURN(const auto period,
                      reader.optional_count({"attn_layer_period"}, limits::kLayersMax));
  if (interval) {
    for (size_t i = *interval - 1; i < layers; i += *interval) kinds[i] = Kind::kFull;
  } else if (period) {
    if (!reader.present({"attn_layer_offset"})) {
      return reader.error("attn_layer_offset", "an integer beside attn_layer_period", "nothing");
    }
    const Json& offset = reader.at("attn_layer_offset");
    if (!offset.is_number_unsigned() || offset.get<uint64_t>() >= *period) {
      return reader.error("attn_layer_offset", fmt::format("an integer below {}", *period));
    }
    for (size_t i = offset.get<uint64_t>(); i < layers; i += *period) kinds[i] = Kind::kFull;
  } else if (const auto listed = reader.present({"attn_layer_indices", "full_attn_idxs"})) {
    KV_ASSIGN_OR_RETURN(const auto indices, reader.numbers(*listed, layers - 1));
    for (const uint64_t i : indices) kinds[i] = Kind::kFull;
  } else if (reader.present({"attn_type_list"})) {  // 1: softmax attention
    KV_ASSIGN_OR_RETURN(const auto ones, reader.numbers("attn_type_list", 1));
    if (ones.size() != layers) {
      return reader.error("attn_type_list", fmt::format("a list of {} numbers", layers));
    }
    for (size_t i = 0; i < layers; ++i) kinds[i] = ones[i] == 1 ? Kind::kFull : Kind::kNoCache;
  } else {
    return std::optional<Kinds>();
  }
  return std::optional(std::move(kinds));
}

// Every n-th layer is full, the others have the window.
Kinds all_but_every(uint64_t n, uint64_t layers) {
  Kinds kinds(layers, Kind::kWindow);
  for (size_t i = n - 1; i < layers; i += n) kinds[i] = Kind::kFull;
  return kinds;
}

MaybeKinds by_pattern(const ConfigReader& reader, const std::string& type, uint64_t layers) {
  KV_ASSIGN_OR_RETURN(const auto pattern,
                      reader.optional_count({"sliding_window_pattern", "_sliding_window_pattern"},
                                            limits::kLayersMax));
  if (pattern) return std::optional(all_but_every(*pattern, layers));
  if (begins_with(type, "gemma3")) return std::optional(all_but_every(6, layers));
  if (type == "cohere2") return std::optional(all_but_every(4, layers));
  if (type == "gemma2") return std::optional(all_but_every(2, layers));
  return std::optional<Kinds>();
}

// use_sliding_window, and the layers below max_window_layers, which are full.
MaybeKinds by_flag(const ConfigReader& reader, const std::string& type, uint64_t layers) {
  KV_ASSIGN_OR_RETURN(auto used, reader.optional_flag("use_sliding_window"));
  if (!used && begins_with(type, "qwen")) used = false;  // what the family does without the flag
  if (!used) return std::optional<Kinds>();
  if (!*used) return std::optional(Kinds(layers, Kind::kFull));
  if (!reader.present({"max_window_layers"})) {
    return reader.error("max_window_layers", "an integer beside use_sliding_window", "nothing");
  }
  const Json& full = reader.at("max_window_layers");
  if (!full.is_number_unsigned()) return reader.error("max_window_layers", "an integer from 0");
  Kinds kinds(layers, Kind::kWindow);
  std::fill_n(kinds.begin(), std::min<uint64_t>(full.get<uint64_t>(), layers), Kind::kFull);
  return std::optional(std::move(kinds));
}

// Llama 4: layers with positions see their chunk, those without see all.
MaybeKinds by_chunks(const ConfigReader& reader, uint64_t layers) {
  if (!reader.present({"attention_chunk_size"})) return std::optional<Kinds>();
  Kinds kinds(layers, Kind::kChunk);
  KV_ASSIGN_OR_RETURN(const auto interval,
                      reader.optional_count({"no_rope_layer_interval"}, limits::kLayersMax));
  const uint64_t every = interval.value_or(4);
  for (size_t i = every - 1; i < layers; i += every) kinds[i] = Kind::kFull;
  if (!reader.present({"no_rope_layers"})) return std::optional(std::move(kinds));
  KV_ASSIGN_OR_RETURN(const auto rotated, reader.numbers("no_rope_layers", 1));
  if (rotated.empty()) return std::optional(std::move(kinds));
  if (rotated.size() != layers) {
    return reader.error("no_rope_layers", fmt::format("a list of {} numbers, or none", layers));
  }
  for (size_t i = 0; i < layers; ++i) kinds[i] = rotated[i] == 1 ? Kind::kChunk : Kind::kFull;
  return std::optional(std::move(kinds));
}

Result<Kinds> kinds_of(const ConfigReader& reader, const std::string& type, uint64_t layers) {
  for (const char* key : kNotUnderstood) {
    if (reader.present({key})) {
      return reader.error(key, "no such member: which layers keep what is not understood from it");
    }
  }
  KV_ASSIGN_OR_RETURN(auto named, by_names(reader, layers));
  if (named) return *std::move(named);
  KV_ASSIGN_OR_RETURN(auto attending, by_attention(reader, layers));
  if (attending) return *std::move(attending);
  KV_ASSIGN_OR_RETURN(auto chunked, by_chunks(reader, layers));
  if (chunked) return *std::move(chunked);
  if (!reader.present({"sliding_window"})) {
    KV_ASSIGN_OR_RETURN(const auto used, reader.optional_flag("use_sliding_window"));
    if (!used.value_or(false)) return Kinds(layers, Kind::kFull);
    return reader.error("sliding_window", "a window beside use_sliding_window", "nothing");
  }
  KV_ASSIGN_OR_RETURN(auto flagged, by_flag(reader, type, layers));
  if (flagged) return *std::move(flagged);
  KV_ASSIGN_OR_RETURN(auto patterned, by_pattern(reader, type, layers));
  if (patterned) return *std::move(patterned);
  if (std::ranges::find(kAllWindowed, type) != std::end(kAllWindowed)) {
    return Kinds(layers, Kind::kWindow);
  }
  return reader.error(
      "sliding_window",
      fmt::format("layer_types or sliding_window_pattern beside it, which say what layers of a "
                  "model of type \"{}\" have it",
                  type));
}

// The last layers of some models read the cache of those before them.
Result<uint64_t> shared_layers(const ConfigReader& reader, uint64_t layers) {
  KV_ASSIGN_OR_RETURN(const auto crossed, reader.optional_flag("use_cla"));
  if (crossed.value_or(false)) {
    return reader.error("use_cla", "false: layers that share a cache are not understood from it");
  }
  if (!reader.present({"num_kv_shared_layers"})) return uint64_t{0};
  const Json& shared = reader.at("num_kv_shared_layers");
  if (!shared.is_number_unsigned() || shared.get<uint64_t>() >= layers) {
    return reader.error("num_kv_shared_layers", fmt::format("an integer below {}", layers));
  }
  return shared.get<uint64_t>();
}

}  // namespace

Result<LayerKinds> read_layer_kinds(const ConfigReader& reader, const std::string& type) {
  KV_ASSIGN_OR_RETURN(
      const uint64_t layers,
      reader.count({"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, limits::kLayersMax));
  KV_ASSIGN_OR_RETURN(Kinds kinds, kinds_of(reader, type, layers));
  KV_ASSIGN_OR_RETURN(const uint64_t shared, shared_layers(reader, layers));
  kinds.resize(layers - shared);
  const auto number_of = [&](Kind kind) {
    return static_cast<uint32_t>(std::count(kinds.begin(), kinds.end(), kind));
  };
  LayerKinds all{.groups = {},
                 .without_cache = number_of(Kind::kNoCache) + static_cast<uint32_t>(shared)};
  if (const uint32_t full = number_of(Kind::kFull)) all.groups.push_back({.layers = full});
  if (const uint32_t narrow = number_of(Kind::kWindow)) {
    KV_ASSIGN_OR_RETURN(const uint64_t window, reader.count({"sliding_window"}, kWindowSlotsMax));
    all.groups.push_back({.layers = narrow, .window_slots = window});
  }
  if (const uint32_t narrow = number_of(Kind::kChunk)) {
    KV_ASSIGN_OR_RETURN(const uint64_t chunk,
                        reader.count({"attention_chunk_size"}, kWindowSlotsMax));
    all.groups.push_back({.layers = narrow, .window_slots = chunk});
  }
  if (all.groups.empty()) {
    return reader.error("layer_types", "a layer with a K/V cache", "none");
  }
  return all;
}

}  // namespace kv
