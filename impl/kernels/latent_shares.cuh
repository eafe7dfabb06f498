// Purpose: how the warps of a block divide rows over a latent cache, and what they tell each other.
// Contract: constants, and the layout of shared memory: Q, kLatentStages tiles of K,
// LatentExchange.
#pragma once

#include <cstdint>

#include "impl/kernels/launch.h"
#include "impl/kernels/warp.cuh"

namespace kvattn {

constexpr int kLatentDimK = 576, kLatentDimV = 512;
constexpr int kLatentTile = 32;  // slots
static_assert(kLatentTile == kLatentTileSlots);
constexpr int kLatentSlotTiles = kLatentTile / 8;
constexpr int kLatentStages = 2;
constexpr int kLatentStep = 16;  // slots of one P.V product
constexpr int kLatentRowTile = 16;
/// Elements from row to row of the weights: eight more than a tile, so that the eight rows of a
/// matrix load lie in different banks.
constexpr int kLatentWeightStride = kLatentTile + 8;

/// How the warps of a block divide kRowTiles * 16 rows.
template <int kRowTiles>
struct LatentShares {
  static constexpr int kRows = kRowTiles * kLatentRowTile;
  static constexpr int kWarps = kRowTiles == 1 ? 4 : 8;
  static constexpr int kThreads = kWarps * kWarpLanes;
  static constexpr int kParts = kWarps / kRowTiles;  // warps that score the same rows
  static constexpr int kPartSlots = kLatentTile / kParts;
  static constexpr int kPartTiles = kPartSlots / 8;
  static constexpr int kWarpDims = kLatentDimV / kWarps;  // of O
  static constexpr int kDimTiles = kWarpDims / 8;
};

/// What warps tell each other about rows, in shared memory.
template <int kRowTiles>
struct LatentExchange {
  using Shares = LatentShares<kRowTiles>;
  alignas(16) uint16_t weights[Shares::kRows][kLatentWeightStride];  // of the tile, as P
  float top[Shares::kParts][Shares::kRows];  // largest logit of a part; at the end, of all slots
  float factor[Shares::kRows];               // O is multiplied by it
  float sum[kLatentSlotTiles][Shares::kRows];
  int32_t shows[kRowTiles];  // whether any of the 16 rows sees a slot of the tile
};

template <int kRowTiles>
constexpr int kLatentRowBytes =
    (LatentShares<kRowTiles>::kRows + kLatentStages * kLatentTile) * kLatentDimK * 2;
template <int kRowTiles>
constexpr int kLatentSharedBytes =
    kLatentRowBytes<kRowTiles> + int{sizeof(LatentExchange<kRowTiles>)};

}  // namespace kvattn
