// Purpose: which physical page a request gets next, as the case's pool orders it.
// Contract: a pure function of (Pool, seed) and of the calls made. Pages that come back are taken
// again first, in the order in which they were held: recycled pages carry somebody's old bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/case/case.h"

namespace kv {

class PagePool {
 public:
  PagePool(const Pool& pool, uint64_t data_seed);

  /// The pool must not be empty.
  PageId take();
  void give_back(std::span<const PageId> pages);

  /// Next to be taken is the last.
  std::span<const PageId> free() const { return free_; }

 private:
  std::vector<PageId> free_;
};

}  // namespace kv
