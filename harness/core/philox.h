// Purpose: the one source of pseudo-random numbers in kverify.
// Contract: Philox4x32-10 (Salmon et al., SC'11), counter based: block(i) is a pure function of
// key and counter, so any element of any tensor can be computed on its own, in any order.
// Example:  Philox p{.key = seed}; std::array<uint32_t, 4> r = p.block(stream, index);
#pragma once

#include <array>
#include <cstdint>

namespace kv {

struct Philox {
  uint64_t key = 0;

  /// Four uniform 32-bit numbers for the 128-bit counter (hi, lo).
  constexpr std::array<uint32_t, 4> block(uint64_t hi, uint64_t lo) const {
    std::array<uint32_t, 4> c = {static_cast<uint32_t>(lo), static_cast<uint32_t>(lo >> 32),
                                 static_cast<uint32_t>(hi), static_cast<uint32_t>(hi >> 32)};
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
      const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
           static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return c;
  }

  /// One uniform 64-bit number for the counter (hi, lo).
  constexpr uint64_t word(uint64_t hi, uint64_t lo) const {
    const auto b = block(hi, lo);
    return uint64_t{b[1]} << 32 | b[0];
  }
};

}  // namespace kv
