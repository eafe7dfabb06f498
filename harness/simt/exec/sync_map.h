// Purpose: what strong accesses (atomics, volatile, relaxed, acquire, release) order.
// Contract: a strong write publishes what its warp has done and seen at that address; a strong read
// of the address takes it over. Fences are taken for granted, and a strong access never races:
// lenient, so that flags and semaphores raise no false alarm. One map for each launch.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>

#include "harness/simt/check/shared_race.h"

namespace kv::simt {

struct SyncVariable {
  std::map<uint64_t, std::array<uint32_t, 32>> seen;  // by block: clocks of its warps
  std::set<uint64_t> blocks;                          // whose work the writers had seen
};

class SyncMap {
 public:
  /// `address`: global, or a shared offset made unique by the block.
  SyncVariable& at(uint64_t address) { return variables_[address]; }
  /// Blocks that `block` is ordered after.
  std::set<uint64_t>& acquired(uint64_t block) { return acquired_[block]; }
  void clear() {
    variables_.clear();
    acquired_.clear();
  }

 private:
  std::map<uint64_t, SyncVariable> variables_;
  std::map<uint64_t, std::set<uint64_t>> acquired_;
};

}  // namespace kv::simt
