// Purpose: what attention is computed from, once for every tier of precision.
// Contract: inputs are exact numbers: the stored bits, decoded, times their exact fp32 scales.
//   x_i = scale * key_scale_i * <q, k_i>;  if softcap > 0: x_i = softcap * tanh(x_i / softcap);
//   then x_i += bias_i (ALiBi), bias_i = -slope * |anchor - i|;  w_i = exp(x_i - max);
//   L = sum of w over visible keys (+ exp(sink - max));  O_j = sum of w_i value_scale_i v_ij / L;
//   LSE = max + ln L. A row that sees nothing is empty, whatever its sink: O = 0, LSE = -inf.
// Conventions, one meaning each:
//  - A slot is visible or it is not (visible.h, mask_encoding.h): a key that a mask hides with -inf
//    or with the lowest finite value weighs nothing, as long as the row sees another one.
//  - Dequantisation scales are fp32 and belong to a slot, whatever their granularity (tensor, head,
//    token, page): the caller repeats them.
//  - K and V may differ in dimension, and may be the same bytes: latent attention in its absorbed
//    form is a head with dim_v <= dim_k and values[i] == keys[i].
//  - A query that RoPE changes on the way is given as `rotated` (rope.h); K is what the cache
//  holds.
// Source: kverify_plugin.h, docs/numerics.md §2.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "harness/core/formats.h"

namespace kv::reference {

struct HeadShape {
  uint32_t dim_k = 0, dim_v = 0;
  DType query_dtype = DType::kF16, kv_dtype = DType::kF16, output_dtype = DType::kF16;
  float scale = 1, softcap = 0;
};

struct QueryRow {
  const std::byte* query = nullptr;  // dim_k elements; not read when `rotated` is given
  std::span<const uint8_t> visible;  // [slots]
  int64_t anchor = 0;                // slot that ALiBi measures distances from
  float alibi_slope = 0;
  std::optional<float> sink = {};
  /// The query that the scores are made of, and how far a kernel's may be from it, the error of
  /// this value included: [dim_k] each, or empty.
  std::span<const double> rotated = {}, rotated_error = {};
};

/// The query rows that attend to one K/V head of one request: decoded once for all of them.
struct HeadBlock {
  HeadShape shape;
  /// [slots] rows of dim_k and dim_v elements. nullptr where no row sees the slot.
  std::span<const std::byte*const> keys, values;
  std::span<const float> key_scales, value_scales;  // [slots], or empty
  std::span<const QueryRow> rows;
};

}  // namespace kv::reference
