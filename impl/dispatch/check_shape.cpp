// What of a shape is lawful, and what is offered.
#include <bit>
#include <cmath>

#include "kvattn/attention.h"

namespace kvattn {
namespace {

constexpr int64_t kGridYMax = 65535;

/// Of K and V.
Status check_dimensions(const AttentionShape& s) {
  if (s.head_dim < 1) return refused("shape: expected a positive head_dim, got ", s.head_dim);
  if (s.value_dim < 0)
    return refused("shape: expected a value_dim of 0 or more, got ", s.value_dim);
  if (s.value_in_key && s.dim_of_value() > s.head_dim) {
    return refused("shape: expected V inside of K, got ", s.dim_of_value(), " dimensions in ",
                   s.head_dim);
  }
  if (s.is_latent() && s.dtype == DType::kF32) {
    return unsupported(
        "shape: expected fp16 or bf16 for a latent cache of 576 dimensions, got fp32");
  }
  const bool converts =
      s.cache_dtype.value_or(s.dtype) != s.dtype || s.rope.pairing != Rope::Pairing::kNone;
  if (converts && (s.value_in_key || s.dim_of_value() != s.head_dim)) {
    return unsupported(
        "shape: expected K and V of one dimension, each with memory of its own, with ",
        "RoPE or a quantised cache, got ", s.head_dim, " and ", s.dim_of_value());
  }
  for (const int64_t dim : {s.head_dim, s.dim_of_value()}) {
    if (s.is_latent() || (dim % 8 == 0 && dim <= 256)) continue;
    return unsupported(
        "shape: expected head_dim and value_dim to be multiples of 8, up to 256, got ", s.head_dim,
        " and ", s.dim_of_value());
  }
  return {};
}

}  // namespace

Status check_shape(const AttentionShape& s) {
  if (s.query_heads < 1 || s.kv_heads < 1 || s.query_heads % s.kv_heads != 0) {
    return refused("shape: expected query heads to be a multiple of KV heads, got ", s.query_heads,
                   " and ", s.kv_heads);
  }
  if (s.query_heads > kGridYMax) {
    return unsupported("shape: expected at most ", kGridYMax, " query heads, got ", s.query_heads);
  }
  if (s.dtype != DType::kF16 && s.dtype != DType::kBF16 && s.dtype != DType::kF32) {
    return refused("shape: expected dtype fp16, bf16 or fp32, got ", dtype_name(s.dtype));
  }
  KVATTN_RETURN_IF_ERROR(check_dimensions(s));
  if (s.page_slots < 1 || s.page_slots > 256 || !std::has_single_bit<uint64_t>(s.page_slots)) {
    return unsupported("shape: expected page_slots to be a power of two in 1..256, got ",
                       s.page_slots);
  }
  if (!std::isfinite(s.scale)) return refused("shape: expected a finite scale, got ", s.scale);
  if (!std::isfinite(s.softcap) || s.softcap < 0) {
    return refused("shape: expected a finite softcap of 0 or more, got ", s.softcap);
  }
  if (s.mask > MaskEncoding::kAdditive) {
    return refused("shape: expected a mask encoding of 0 to 4, got ", static_cast<int>(s.mask));
  }
  if (s.mask == MaskEncoding::kAdditive && s.mask_dtype != DType::kF16 &&
      s.mask_dtype != DType::kBF16 && s.mask_dtype != DType::kF32) {
    return refused("shape: expected an additive mask of fp16, bf16 or fp32, got ",
                   dtype_name(s.mask_dtype));
  }
  if (s.causal > Causal::kBottomRight) {
    return refused("shape: expected causal 0, 1 or 2, got ", static_cast<int>(s.causal));
  }
  if (s.window_left < -1 || s.window_right < -1) {
    return refused("shape: expected windows of -1 or more, got left ", s.window_left, " right ",
                   s.window_right);
  }
  return check_format(format_of(s));
}

}  // namespace kvattn
