#include "harness/run/shape.h"

#include <map>

#include "harness/run/mask_tensor.h"
#include "harness/run/tensor.h"

namespace kv {
namespace {

uint32_t padding_bits(const Case& c) {
  uint32_t bits = 0;
  std::map<RequestId, bool> real, ends_with_pad;
  for (const Op& operation : c.ops) {
    const auto* step = std::get_if<op::Step>(&operation);
    if (step == nullptr) continue;
    for (const op::StepRow& row : step->rows) {
      if (row.pad_left > 0) bits |= KV_PAD_LEFT;
      if (row.pad_right > 0) bits |= KV_PAD_RIGHT;
      bool& has_real = real[row.request];
      if (has_real && row.append > 0 && (row.pad_left > 0 || ends_with_pad[row.request]))
        bits |= KV_PAD_HOLES;
      has_real = has_real || row.append > 0;
      if (row.append + row.pad_left + row.pad_right > 0)
        ends_with_pad[row.request] = row.pad_right > 0 || row.append == 0;
    }
  }
  return bits;
}

}  // namespace

kv_attention_shape plugin_shape(const Case& c) {
  // The enumerators of the case stand in the order of the plugin header's constants.
  static_assert(static_cast<int>(Causal::kBottomRight) == KV_CAUSAL_BOTTOM_RIGHT);
  static_assert(static_cast<int>(MaskEncoding::kAdditive) == KV_MASK_ADDITIVE);
  static_assert(static_cast<int>(RopePairing::kInterleaved) == KV_ROPE_INTERLEAVED);
  static_assert(static_cast<int>(KvScale::kPage) == KV_SCALE_PAGE);
  kv_attention_shape shape = {};
  shape.struct_bytes = sizeof shape;
  shape.query_heads = c.shape.query_heads;
  shape.kv_heads = c.shape.kv_heads;
  shape.head_dim_k = c.shape.head_dim_k;
  shape.head_dim_v = c.shape.head_dim_v;
  shape.page_slots = c.pool.page_slots;
  shape.query_dtype = dl_type(c.shape.query_dtype);
  shape.kv_dtype = dl_type(c.shape.kv_dtype);
  shape.output_dtype = dl_type(c.shape.output_dtype);
  shape.scale = c.shape.scale;
  shape.softcap = c.shape.softcap;
  shape.causal = static_cast<uint32_t>(c.mask.causal);
  shape.window_left = c.mask.window_left;
  shape.window_right = c.mask.window_right;
  shape.mask_encoding = static_cast<uint32_t>(c.mask.encoding);
  shape.mask_dtype = dl_type(c.mask.additive_dtype);
  shape.padding = padding_bits(c);
  shape.alibi = c.shape.alibi;
  shape.sinks = c.shape.sinks;
  shape.rope = static_cast<uint32_t>(c.shape.rope.pairing);
  shape.rope_dims = c.shape.rope.dims;
  shape.rope_theta = c.shape.rope.theta;
  shape.kv_scale = static_cast<uint32_t>(c.shape.kv_scale);
  shape.tree = has_trees(c);
  shape.value_in_key = c.shape.value_in_key;
  return shape;
}

PageStrides page_strides(const Case& c, uint32_t head_dim) {
  const int64_t dim = head_dim, heads = c.shape.kv_heads, slots = c.pool.page_slots;
  const int64_t page = slots * heads * dim;
  switch (c.pool.layout) {
    case CacheLayout::kSlotHead:
      return {page, heads * dim, dim};
    case CacheLayout::kHeadSlot:
      return {page, dim, slots * dim};
    case CacheLayout::kInterleaved:
      break;
  }
  return {2 * page, 2 * heads * dim, dim};
}

}  // namespace kv
