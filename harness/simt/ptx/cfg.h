// Purpose: basic blocks of a function, for liveness and reconvergence.
// Contract: pure; blocks are in code order and cover it. A call does not end a block. A guarded
// bra, brx, ret, exit or trap also falls through.
// Example:  Cfg cfg = build_cfg(function); for (uint32_t s : cfg.blocks[0].successors) ...
#pragma once

#include <cstdint>
#include <vector>

#include "harness/simt/ptx/module.h"

namespace kv::simt::ptx {

struct BasicBlock {
  uint32_t begin = 0, end = 0;       // instruction indices, end exclusive
  std::vector<uint32_t> successors;  // block indices, ascending, each once; empty: leaves
};

struct Cfg {
  std::vector<BasicBlock> blocks;
  std::vector<uint32_t> block_of;  // instruction index to block index
};

Cfg build_cfg(const Function& function);

}  // namespace kv::simt::ptx
