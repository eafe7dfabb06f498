// Purpose: a place where one block of a launch is resident: its warps, shared memory and barriers.
// Contract: the memory of a place is kept for the next block and the next launch. Shared memory
// starts as poison, undefined.
#pragma once

#include <memory>

#include "harness/simt/exec/state.h"

namespace kv::simt {

class BlockPlace {
 public:
  BlockPlace() { block_.cold = &cold_; }
  BlockPlace(const BlockPlace&) = delete;

  /// Makes room for blocks of this launch.
  void prepare(LaunchState& launch, uint32_t shared_bytes);
  /// Starts block `index` of the grid.
  void start(uint64_t index);

  Block& block() { return block_; }
  Warp& warp(uint32_t k) { return cold_.warps[k]; }
  WarpState state(uint32_t k) const { return cold_.state[k]; }
  uint32_t warps() const { return block_.warps; }
  bool finished() const { return cold_.done == cold_.all; }
  bool any_ready() const;

  /// Takes note of why a warp stopped; barriers may set others free.
  void stopped(Warp& w);

 private:
  void fill_specials(Warp& w);
  void arrive(Warp& w);
  void complete(Barrier& barrier, bool whole);
  void check_whole(Barrier& barrier);
  uint32_t restart_clocks();
  void forget_stamps();

  Block block_;
  BlockCold cold_;
};

}  // namespace kv::simt
