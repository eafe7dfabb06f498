#include "impl/plugin/engine_config.h"

#include <algorithm>

#include "impl/plugin/dlpack.h"

namespace kvattn {
namespace {

constexpr uint32_t kWidthMax = 65535;

/// What the interface can ask for and the engine does not offer.
Status check_offered(const kv_attention_shape& s) {
  const std::pair<bool, const char*> missing[] = {
      {s.head_dim_k != s.head_dim_v, "K and V of different head dimension"},
      {s.value_in_key != 0, "V inside of K"},
      {s.mask_encoding != KV_MASK_NONE, "explicit masks"},
      {s.padding != 0, "padding in the cache"},
      {s.causal != KV_CAUSAL_BOTTOM_RIGHT, "other than bottom-right causal attention"},
      {s.window_right != -1, "a window to the right"},
  };
  for (const auto& [asked, what] : missing) {
    if (asked) return unsupported("engine: kvattn does not offer ", what);
  }
  return {};
}

StatusOr<AttentionShape> shape_of(const kv_attention_shape& s) {
  KVATTN_RETURN_IF_ERROR(check_offered(s));
  const StatusOr<DType> dtype = dtype_of("engine: Q", s.query_dtype);
  if (!dtype.ok()) return dtype.status();
  const StatusOr<DType> output = dtype_of("engine: O", s.output_dtype);
  if (!output.ok()) return output.status();
  const StatusOr<DType> stored = dtype_of("engine: the cache", s.kv_dtype);
  if (!stored.ok()) return stored.status();
  const bool is_float = *dtype == DType::kF16 || *dtype == DType::kBF16 || *dtype == DType::kF32;
  if (!is_float || *output != *dtype) {
    return unsupported("engine: expected Q and O both in fp16, bf16 or fp32, got ",
                       dtype_name(*dtype), " and ", dtype_name(*output));
  }
  const bool has_codes = is_code(*stored);
  if (!has_codes && *stored != *dtype) {
    return unsupported("engine: expected a cache of ", dtype_name(*dtype),
                       ", e4m3, e5m2 or int8, got ", dtype_name(*stored));
  }
  if (s.kv_scale > KV_SCALE_PAGE || (s.kv_scale != KV_SCALE_NONE && !has_codes)) {
    return refused("engine: expected scales 0 to 4, and none without codes, got ", s.kv_scale);
  }
  if (s.rope > KV_ROPE_INTERLEAVED) {
    return refused("engine: expected RoPE 0 to 2, got ", s.rope);
  }
  if (s.query_heads < 1 || s.kv_heads < 1 || s.query_heads % s.kv_heads != 0) {
    return refused("engine: expected query heads to be a multiple of KV heads, got ", s.query_heads,
                   " and ", s.kv_heads);
  }
  if (s.head_dim_k < 1 || s.head_dim_k > kWidthMax || s.query_heads > kWidthMax) {
    return refused("engine: expected 1 to ", kWidthMax, " query heads and dimensions, got ",
                   s.query_heads, " and ", s.head_dim_k);
  }
  return AttentionShape{.query_heads = s.query_heads,
                        .kv_heads = s.kv_heads,
                        .head_dim = s.head_dim_k,
                        .page_slots = s.page_slots,
                        .dtype = *dtype,
                        .scale = s.scale,
                        .causal = Causal::kBottomRight,
                        .softcap = s.softcap,
                        .cache_dtype = has_codes ? std::optional(*stored) : std::nullopt,
                        .scales = static_cast<ScaleGranularity>(s.kv_scale),
                        .rope = {.pairing = static_cast<Rope::Pairing>(s.rope),
                                 .dims = s.rope_dims,
                                 .theta = s.rope_theta}};
}

/// Of every query head of every layer, those of the draft model last.
StatusOr<std::vector<float>> head_values(const kv_engine_config& c, const char* name, bool is_used,
                                         const float* values) {
  if (!is_used) return std::vector<float>();
  if (values == nullptr) return refused("engine: ", name, ": the shape says that they are given");
  uint64_t layers = c.draft_layers;
  for (uint32_t g = 0; g < c.group_count; ++g) layers += c.groups[g].layers;
  return std::vector<float>(values, values + layers * c.shape->query_heads);
}

Status check_sizes(const kv_engine_config& c) {
  if (c.shape == nullptr || c.shape->struct_bytes < sizeof *c.shape) {
    return refused("engine: expected a shape of ", sizeof *c.shape, " bytes or more");
  }
  if (c.fill_qkv == nullptr || c.groups == nullptr || c.group_count == 0) {
    return refused("engine: expected fill_qkv and at least one group of layers");
  }
  if (c.shape->kv_scale != KV_SCALE_NONE && c.fill_scales == nullptr) {
    return refused("engine: expected fill_scales, as the shape has scales");
  }
  // Within 31 bits each, so that products of two fit.
  for (uint32_t number :
       {c.group_count, c.page_count, c.host_page_count, c.batch_slots, c.request_max,
        c.context_limit, c.step_tokens_max, c.async_depth, c.draft_layers, c.draft_page_count}) {
    if (number > 0x7fffffff) return refused("engine: expected 31-bit sizes, got ", number);
  }
  for (const kv_layer_group& group : std::span(c.groups, c.group_count)) {
    if (group.layers > 0x7fffffff) {
      return refused("engine: expected a 31-bit number of layers, got ", group.layers);
    }
  }
  return {};
}

/// Before sizes are multiplied: in doubles, which cannot overflow.
Status check_memory(const PagedCacheConfig& c, const SlotLayout& layout) {
  constexpr double kBytesMax = 0x1p46;
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  const double layers = number(std::ranges::max(c.groups, {}, &LayerGroup::layers).layers);
  const double pages = number(std::max<int64_t>(c.pages.value + c.host_pages.value, 1));
  const double slots = pages * number(c.page_slots);
  const double rows = number(c.batch_slots) * number(c.step_slots_max.value);
  const double bytes = slots * layers * number(layout.stored_key + layout.stored_value) +
                       rows * number(layout.query + layout.key + layout.value + layout.output);
  if (bytes <= kBytesMax) return {};
  return exhausted("engine: expected caches and tensors of at most ", kBytesMax, " bytes, got ",
                   bytes);
}

}  // namespace

SlotLayout layout_of(const AttentionShape& shape) {
  const int64_t row = shape.head_dim * dtype_bytes(shape.dtype);
  const int64_t stored = shape.head_dim * dtype_bytes(cache_dtype(shape));
  return {.query = shape.query_heads * row,
          .key = shape.kv_heads * row,
          .value = shape.kv_heads * row,
          .output = shape.query_heads * row,
          .stored_key = shape.kv_heads * stored,
          .stored_value = shape.kv_heads * stored,
          .scales = shape.scales == ScaleGranularity::kNone ? 0 : shape.kv_heads,
          .query_heads = shape.query_heads};
}

StatusOr<ParsedConfig> engine_config(const kv_engine_config& c) {
  KVATTN_RETURN_IF_ERROR(check_sizes(c));
  const StatusOr<AttentionShape> shape = shape_of(*c.shape);
  if (!shape.ok()) return shape.status();
  const SlotLayout layout = layout_of(*shape);
  ParsedConfig parsed{.shape = *shape};
  PagedCacheConfig& cache = parsed.engine.cache;
  for (uint32_t g = 0; g < c.group_count; ++g) {
    cache.groups.push_back({.layers = static_cast<int32_t>(c.groups[g].layers),
                            .window_left = c.groups[g].window_left});
  }
  cache.pages = PageCount(c.page_count);
  cache.host_pages = PageCount(c.host_page_count);
  cache.page_slots = shape->page_slots;
  cache.dtype = cache_dtype(*shape);
  cache.batch_slots = static_cast<int32_t>(c.batch_slots);
  cache.requests = static_cast<int32_t>(c.request_max);
  cache.context_limit = SlotCount(c.context_limit);
  cache.step_slots_max = SlotCount(c.step_tokens_max);
  KVATTN_RETURN_IF_ERROR(check_memory(cache, layout));
  const int64_t layers = std::ranges::max(cache.groups, {}, &LayerGroup::layers).layers;
  cache.page_bytes =
      ByteCount(shape->page_slots * layers * (layout.stored_key + layout.stored_value));
  cache.steps_in_flight_max = static_cast<int>(std::min<uint32_t>(c.async_depth, 99)) + 1;
  cache.overcommit = c.overcommit;
  cache.prefix_index = c.prefix_cache != 0;
  // Slots of two pages have scales of two tokens.
  parsed.engine.whole_page_shifts = shape->scales == ScaleGranularity::kPage;
  parsed.engine.draft_layers = static_cast<int32_t>(c.draft_layers);
  parsed.engine.draft_pages = PageCount(c.draft_page_count);
  parsed.engine.async_depth = static_cast<int>(std::min<uint32_t>(c.async_depth, 99));
  StatusOr<std::vector<float>> slopes =
      head_values(c, "alibi_slopes", c.shape->alibi != 0, c.alibi_slopes);
  StatusOr<std::vector<float>> sinks = head_values(c, "sinks", c.shape->sinks != 0, c.sinks);
  if (!slopes.ok()) return slopes.status();
  if (!sinks.ok()) return sinks.status();
  parsed.heads = {.alibi_slopes = *std::move(slopes), .sinks = *std::move(sinks)};
  KVATTN_RETURN_IF_ERROR(Engine::check_config(parsed.engine));
  KVATTN_RETURN_IF_ERROR(check_backend(store_size(cache, layout), *shape));
  return parsed;
}

}  // namespace kvattn
