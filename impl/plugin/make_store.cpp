// What a cache's memory is made of, the target's or the draft model's.
#include "impl/plugin/engine_config.h"

namespace kvattn {
namespace {

/// The draft model's layers come last.
HeadInputs heads_of(const HeadInputs& all, const AttentionShape& shape, bool draft,
                    int64_t draft_layers) {
  const auto part = [&](const std::vector<float>& values) {
    const int64_t first = std::ssize(values) - draft_layers * shape.query_heads;
    if (values.empty()) return values;
    return draft ? std::vector<float>(values.begin() + first, values.end())
                 : std::vector<float>(values.begin(), values.begin() + first);
  };
  return {.alibi_slopes = part(all.alibi_slopes), .sinks = part(all.sinks)};
}

/// The scales of tensors and heads: of the target's layers, or of the draft model's.
StatusOr<CacheFormat> format_of(const kv_engine_config& config, const AttentionShape& shape,
                                bool draft) {
  CacheFormat format = format_of(shape);
  const bool constant =
      shape.scales == ScaleGranularity::kTensor || shape.scales == ScaleGranularity::kHead;
  if (!constant) return format;
  uint32_t layers = draft ? config.draft_layers : 0;
  for (uint32_t g = 0; g < config.group_count && !draft; ++g) layers += config.groups[g].layers;
  const int64_t heads = shape.kv_heads;
  format.key_scales.resize(layers * heads);
  format.value_scales.resize(layers * heads);
  for (uint32_t layer = 0; layer < layers; ++layer) {
    const kv_token token = {.struct_bytes = sizeof token, .layer = layer, .draft = draft ? 1u : 0u};
    if (config.fill_scales(config.harness, &token, &format.key_scales[layer * heads],
                           &format.value_scales[layer * heads]) != KV_OK) {
      return failed("fill_scales: failed for layer ", layer);
    }
  }
  return format;
}

}  // namespace

StatusOr<std::unique_ptr<Store>> make_store(const kv_engine_config& config,
                                            const ParsedConfig& parsed, bool draft) {
  StatusOr<CacheFormat> format = format_of(config, parsed.shape, draft);
  if (!format.ok()) return format.status();
  StoreSize size = store_size(draft ? draft_cache_config(parsed.engine) : parsed.engine.cache,
                              layout_of(parsed.shape));
  size.format = *std::move(format);
  return make_backend(size, parsed.shape,
                      heads_of(parsed.heads, parsed.shape, draft, config.draft_layers));
}

}  // namespace kvattn
