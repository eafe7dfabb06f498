// Purpose: deterministic choices for one damaged copy.
// Contract: the n-th choice is a function of the seed and n.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/core/philox.h"

namespace kv::simt::hostile {

class Choices {
 public:
  explicit Choices(uint64_t seed) : philox_{.key = seed} {}
  uint64_t word() { return philox_.word(0, next_++); }
  size_t below(size_t bound) { return bound ? size_t(word() % bound) : 0; }
  bool one_in(size_t n) { return below(n) == 0; }
  template <class List>
  auto& of(List& list) {
    return list[below(std::size(list))];
  }

 private:
  Philox philox_;
  uint64_t next_ = 0;
};

}  // namespace kv::simt::hostile
