// The online softmax of a tile whose scores lie in registers as mma.sync leaves them: a lane holds
// two neighbouring slots of each eight, of two rows (lane / 4 and lane / 4 + 8).
#pragma once

#include "impl/kernels/score.cuh"
#include "impl/kernels/warp.cuh"

namespace kvattn {

/// What a lane keeps of its two rows from tile to tile.
template <int kDimTiles>
struct RowStates {
  float (&max_log2)[2];           // running maximum of the base-2 logits
  float (&sum)[2];                // of this lane's weights
  float (&output)[kDimTiles][4];  // weighted values, not normalised
};

/// Whether mask or tree hide slots [base, base + used) from all of the warp's rows: then the tile
/// changes no bit, and nobody has to read or multiply it. Every lane calls.
__device__ inline bool hides_tile(const HiddenSlots& hidden, const ScoredRow (&rows)[2],
                                  int32_t base, int used) {
  if (!hidden.exist()) return false;
  bool shows = false;
#pragma unroll 1
  for (int first = threadIdx.x % 4 * 2; first < used; first += 8) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int32_t slot = base + first + j % 2;
      shows |= rows[j / 2].sees(slot) && hidden.apply(rows[j / 2], slot, 0) != -INFINITY;
    }
    if (__any_sync(kAllLanes, shows)) return false;
  }
  return true;
}

/// Takes a tile into the running maxima and sums; base-2 logits (-inf: hidden) become weights.
template <int kSlotTiles, int kDimTiles>
__device__ void weigh_tile(float (&scores)[kSlotTiles][4], const RowStates<kDimTiles>& rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float top = rows.max_log2[half];
#pragma unroll
    for (int n = 0; n < kSlotTiles; ++n) {
      top = fmaxf(top, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
    }
    top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, 1));
    top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, 2));
    // As long as nothing was visible, any finite shift keeps the exponents from becoming NaN.
    const float shift = top == -INFINITY ? 0.0f : top;
    const float rescale = exp2_approx(__fsub_rn(rows.max_log2[half], shift));
    rows.max_log2[half] = top;
    float part = 0;
#pragma unroll
    for (int n = 0; n < kSlotTiles; ++n) {
#pragma unroll
      for (int j = 2 * half; j < 2 * half + 2; ++j) {
        scores[n][j] = exp2_approx(__fsub_rn(scores[n][j], shift));
        part = __fadd_rn(part, scores[n][j]);
      }
    }
    rows.sum[half] = __fmaf_rn(rows.sum[half], rescale, part);
#pragma unroll
    for (int n = 0; n < kDimTiles; ++n) {
      rows.output[n][2 * half] = __fmul_rn(rows.output[n][2 * half], rescale);
      rows.output[n][2 * half + 1] = __fmul_rn(rows.output[n][2 * half + 1], rescale);
    }
  }
}

}  // namespace kvattn
