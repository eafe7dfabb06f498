// Purpose: runs a grid: which blocks are resident, which warp runs next, when to give up.
// Contract: a deterministic function of the launch and its schedule seed. Seed 0: blocks and warps
// in ascending order, one block at a time; another becomes resident when the resident ones seem to
// wait for it (they spin). Other seeds: a few blocks resident, warps picked at random for short
// slices. A cooperative launch has all its blocks resident.
#pragma once

#include <memory>
#include <vector>

#include "harness/simt/exec/block.h"

namespace kv::simt {

/// Places are kept between launches.
using BlockPlaces = std::vector<std::unique_ptr<BlockPlace>>;

/// Refuses grids, blocks and parameters of impossible size.
Result<void> check_shape(const LaunchSpec& spec, const ptx::Function& kernel);

LaunchStatus run_grid(LaunchState& launch, uint32_t shared_bytes, bool cooperative,
                      BlockPlaces& places);

}  // namespace kv::simt
