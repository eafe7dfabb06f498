// Purpose: which pieces of work may run at the same time on a real device.
// Contract: work is ordered after what its edges reach, and after all that had run when it was
// issued (the host has waited for that). Vector clocks over chains: an item that follows the last
// of a chain continues it, any other begins one. A single stream is one chain, and costs nothing.
// Example:
//   overlap.issued(a, {}); overlap.issued(b, {});
//   overlap.runs(b);                         // {.tracked = true}: a may overlap it
//   overlap.runs(a);                         // {.tracked = true, .unordered = {b}}
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "harness/simt/device.h"

namespace kv::simt::cudart {

class Overlap {
 public:
  /// `before`: those of its predecessors that have not run.
  void issued(uint64_t id, std::span<const uint64_t> before);
  /// What the device must know about the item that runs now.
  WorkOrder runs(uint64_t id);
  void clear();

 private:
  using Clocks =
      std::map<uint64_t, uint64_t>;  // by chain: how many of its items are ordered before
  struct Item {
    uint64_t chain = 0, position = 0, ran_before = 0;
    Clocks seen = {};
  };
  struct Chain {
    uint64_t last = 0, waiting = 0;
  };
  struct Ran {
    uint64_t id = 0, chain = 0, position = 0, index = 0;
  };
  static constexpr size_t kRanMax = 4096;  // of older ones nothing is reported

  std::map<uint64_t, Item> waiting_;
  std::map<uint64_t, Chain> chains_;  // those with waiting items
  std::vector<Ran> ran_;              // while something waits
  uint64_t chain_count_ = 0, ran_count_ = 0;
};

}  // namespace kv::simt::cudart
