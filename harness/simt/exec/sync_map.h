// Purpose: what strong accesses (atomics, volatile, relaxed, acquire, release) order.
// Contract: a strong write publishes at its address what its warp had done and seen at its last
// fence or barrier, and, for other blocks, what its block had done and seen at its last fence of
// device scope, by whichever warp; a release publishes all until now. One of the block's scope
// reaches its own block only. A strong read of the address takes it over; a fence of the reader is
// taken for granted, and a strong access never races itself: lenient, so that flags and semaphores
// raise no false alarm. One for each launch.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>

namespace kv::simt {

/// Clocks of blocks, by number.
using BlockClocks = std::map<uint32_t, uint32_t>;

struct SyncVariable {
  std::map<uint64_t, std::array<uint32_t, 32>> warps;  // by block: clocks of its warps
  BlockClocks blocks;
};

struct SyncMap {
  /// By address: global, or a shared offset made unique by the block. Looked up, never iterated.
  std::unordered_map<uint64_t, SyncVariable> variables;
  /// What each block is ordered after.
  std::unordered_map<uint32_t, BlockClocks> acquired;
};

inline void join(BlockClocks& into, const BlockClocks& other) {
  for (const auto& [block, clock] : other) {
    uint32_t& mine = into[block];
    if (mine < clock) mine = clock;
  }
}

}  // namespace kv::simt
