// Purpose: messages as a damaged worker would send them.
// Contract: a pure function of message and number: one to four bytes are overwritten, one for
// numbers that 4 divides. Example: for (uint64_t i = 0; i < 5000; ++i) decode(damaged(sound, i));
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/core/philox.h"

namespace kv {

inline std::vector<std::byte> damaged(std::vector<std::byte> bytes, uint64_t number) {
  const Philox random{number};
  for (uint64_t k = 0; k <= number % 4; ++k) {
    const uint64_t word = random.word(1, k);
    bytes[word % bytes.size()] = static_cast<std::byte>(word >> 56);
  }
  return bytes;
}

}  // namespace kv
