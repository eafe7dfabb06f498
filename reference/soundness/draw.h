// Purpose: random choices for the campaign.
// Contract: a counter over Philox: the same key gives the same choices on every machine.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "harness/core/philox.h"

namespace kv::reference {

class Draw {
 public:
  explicit Draw(uint64_t key) : random_{.key = key} {}
  /// 0 .. count - 1
  uint64_t below(uint64_t count) { return random_.word(0, index_++) % count; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  /// [0, 1)
  double uniform() { return static_cast<double>(random_.word(0, index_++) >> 11) * 0x1p-53; }
  /// Roughly normal: the sum of four uniforms, scaled to variance 1.
  double normal() {
    double sum = 0;
    for (uint32_t word : random_.block(1, index_++)) sum += word * 0x1p-32 - 0.5;
    return sum * 1.7320508;
  }
  template <class T>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[below(choices.size())];
  }

 private:
  Philox random_;
  uint64_t index_ = 0;
};

}  // namespace kv::reference
