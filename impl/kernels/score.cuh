// Purpose: what every attention kernel needs to know of a query row: where it lies, what it sees,
// how a dot product becomes a logit, and how a row ends.
// Contract: logits are kept in base 2, scaled by log2(e). Rounding is pinned (__f*_rn), so that
// every kernel turns the same dot product into the same logit.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "impl/kernels/batch.cuh"
#include "impl/kernels/warp.cuh"

namespace kvattn {

constexpr float kLn2 = 0.693147180559945309f;
// log2(e) in two parts: times x it costs one rounding.
constexpr float kLog2EHigh = 1.44269502f, kLog2ELow = 1.92596299e-8f;
static_assert(double{kLog2EHigh} + kLog2ELow - 1.4426950408889634 < 1e-15 &&
              1.4426950408889634 - kLog2EHigh - double{kLog2ELow} < 1e-15);

__device__ inline float to_log2(float natural) {
  return __fmaf_rn(natural, kLog2EHigh, __fmul_rn(natural, kLog2ELow));
}

struct RowAddress {
  int64_t token, head;  // in the query and output tensors
};

/// `row` counts from the tile's first packed row.
__device__ inline RowAddress row_address(const AttendParams& p, const RowTile& tile,
                                         int32_t kv_head, int32_t row) {
  const int32_t packed = tile.first_row + row;
  return {tile.first_token + packed / p.group,
          static_cast<int64_t>(kv_head) * p.group + packed % p.group};
}

/// What turns the dot products of one query row into logits.
struct ScoredRow {
  Visible visible;
  int32_t row;       // of the tile; -1: past its rows, what becomes of it is nobody's concern
  int32_t anchor;    // slot that ALiBi measures distances from
  float slope_log2;  // of ALiBi

  __device__ bool sees(int32_t slot) const { return slot >= visible.first && slot <= visible.last; }
  __device__ bool sees_all(int32_t first, int32_t last) const {
    return row < 0 || (visible.first <= first && visible.last >= last);
  }
};

__device__ inline ScoredRow scored_row(const AttendParams& p, const RowTile& tile, int32_t kv_head,
                                       int32_t row) {
  if (row >= tile.row_count) return {{0, -1}, -1, 0, 0};
  const int32_t query = (tile.first_row + row) / p.group;
  ScoredRow scored = {visible_slots(p, tile, query, query), row, 0, 0};
  if (p.alibi_slopes != nullptr) {
    scored.anchor = static_cast<int32_t>(anchor_shift(p, tile) + query);
    scored.slope_log2 = to_log2(p.alibi_slopes[row_address(p, tile, kv_head, row).head]);
  }
  return scored;
}

/// The same where it is known what the tile's rows see between them: as much as the only query of a
/// request sees.
__device__ inline ScoredRow scored_row(const AttendParams& p, const RowTile& tile, int32_t kv_head,
                                       int32_t row, Visible hull) {
  if (tile.query_length > 1 || row >= tile.row_count || p.alibi_slopes != nullptr) {
    return scored_row(p, tile, kv_head, row);
  }
  return {hull, row, 0, 0};
}

__device__ inline bool has_modifiers(const AttendParams& p) {
  return p.softcap_log2 != 0 || p.alibi_slopes != nullptr;
}

__device__ inline float plain_logit(const AttendParams& p, float dot) {
  return __fmul_rn(dot, p.scale_log2);
}

/// The logit of a visible slot, with soft cap and ALiBi in that order.
__device__ inline float modified_logit(const AttendParams& p, const ScoredRow& row, float dot,
                                       int32_t slot) {
  float logit = plain_logit(p, dot);
  if (p.softcap_log2 != 0) {
    logit = __fmul_rn(p.softcap_log2, tanh_approx(__fmul_rn(dot, p.softcap_scale)));
  }
  const float distance = fabsf(static_cast<float>(row.anchor - slot));
  return __fmaf_rn(-row.slope_log2, distance, logit);
}

/// What a row's logits pass through last: mask tensor and tree.
struct HiddenSlots {
  const AttendParams& p;
  const RowTile& tile;
  int32_t kv_head;

  __device__ bool exist() const { return p.mask.data != nullptr || p.tree.words != nullptr; }

  /// The logit of a slot in the row's visible range, or -inf when mask or tree hide it.
  __device__ float apply(const ScoredRow& row, int32_t slot, float logit) const {
    const RowAddress at = row_address(p, tile, kv_head, row.row);
    if (p.tree.words != nullptr && !tree_shows(at.token, slot)) return -INFINITY;
    if (p.mask.data == nullptr) return logit;
    const int64_t index = tile.request * p.mask.request_stride + at.head * p.mask.head_stride +
                          (at.token - tile.first_token) * p.mask.query_stride;
    switch (p.mask.format) {
      case MaskParams::kPackedBits: {
        const uint32_t word = static_cast<const uint32_t*>(p.mask.data)[index + slot / 32];
        return word >> slot % 32 & 1 ? logit : -INFINITY;
      }
      case MaskParams::kBoolKeep:
        return static_cast<const uint8_t*>(p.mask.data)[index + slot] != 0 ? logit : -INFINITY;
      case MaskParams::kBoolBlock:
        return static_cast<const uint8_t*>(p.mask.data)[index + slot] == 0 ? logit : -INFINITY;
      default:
        return add(index + slot, logit);
    }
  }

 private:
  __device__ bool tree_shows(int64_t token, int32_t slot) const {
    const int32_t bit = slot - p.tree.first_slots[tile.request];
    return bit < 0 || (p.tree.words[token * p.tree.token_stride + bit / 32] >> bit % 32 & 1) != 0;
  }

  /// 0 leaves the logit's bits as they are.
  __device__ float add(int64_t index, float logit) const {
    constexpr float kLowestF32 = -3.40282347e38f, kLowestF16 = -65504.0f;
    constexpr float kLowestBF16 = -3.38953139e38f;
    float value, lowest;
    if (p.mask.format == MaskParams::kF32) {
      value = static_cast<const float*>(p.mask.data)[index];
      lowest = kLowestF32;
    } else if (p.mask.format == MaskParams::kF16) {
      value = __half2float(static_cast<const __half*>(p.mask.data)[index]);
      lowest = kLowestF16;
    } else {
      value = __bfloat162float(static_cast<const __nv_bfloat16*>(p.mask.data)[index]);
      lowest = kLowestBF16;
    }
    return value <= lowest ? -INFINITY : __fadd_rn(logit, to_log2(value));
  }
};

/// How a row ends: its LSE, and the factor that turns its sum of weighted values into O.
struct RowEnd {
  float lse, factor;
};

/// `sum` is relative to 2^max_log2. A row that saw nothing has sum 0, whatever its sink.
__device__ inline RowEnd end_row(const AttendParams& p, int64_t head, float max_log2, float sum) {
  if (sum == 0) return {-INFINITY, 0};
  float rescale = 1;
  if (p.sinks != nullptr) {
    const float sink_log2 = to_log2(p.sinks[head]);
    const float top = fmaxf(max_log2, sink_log2);
    rescale = exp2_approx(__fsub_rn(max_log2, top));
    sum = __fmaf_rn(sum, rescale, exp2_approx(__fsub_rn(sink_log2, top)));
    max_log2 = top;
  }
  return {__fmaf_rn(max_log2, kLn2, __fmul_rn(log2_approx(sum), kLn2)), rescale / sum};
}

}  // namespace kvattn
