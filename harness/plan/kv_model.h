// Purpose: what a model's config.json says of its K/V cache.
// Contract: reads the usual names of Hugging Face configurations, also inside "text_config" (or
// "llm_config", "language_config") of a multimodal model; a member that changes the cache and is
// not understood is an error, every other one is ignored. The text may be hostile: one error names
// the member, what was expected and what was found. Nothing is guessed: a size that is missing and
// that no other member implies is an error. Caches of encoders are not modelled.
// Example:  KV_ASSIGN_OR_RETURN(KvModel m, read_kv_model(text, "config.json"));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/formats.h"
#include "harness/core/result.h"

namespace kv {

/// Layers that keep the same slots of a request.
struct LayerGroup {
  uint32_t layers = 0;
  uint64_t window_slots = 0;  // the newest slots that are kept; 0: all
  bool operator==(const LayerGroup&) const = default;
};

struct KvModel {
  std::string type;  // "llama"; printable ASCII
  uint32_t query_heads = 0, kv_heads = 0;
  uint32_t head_dim_k = 0, head_dim_v = 0;
  /// Latent attention (MLA) keeps one compressed vector and one rotated key for each token and
  /// layer instead of heads; this is their elements together, 0 for ordinary attention.
  uint32_t latent_dim = 0;
  std::optional<DType> dtype;      // of the model; some configs do not say
  std::optional<DType> kv_dtype;   // of the cache, where a quantised model says it
  uint64_t context_limit = 0;      // 0: the config does not say
  std::vector<LayerGroup> groups;  // of layers with a K/V cache of their own
  uint32_t without_cache = 0;      // other layers: they keep a state, or read another one's cache

  uint32_t layers() const;  // with a cache
  bool has_windows() const;
};

Result<KvModel> read_kv_model(std::string_view text, std::string_view name);

}  // namespace kv
