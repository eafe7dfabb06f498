// Purpose: where an allocation or module variable lies and what is known of it as a whole.
// Contract: plain data; the executor reads it in its inner loop.
#pragma once

#include <cstdint>

namespace kv::simt {

struct Extent {
  enum Flag : uint32_t {
    kLive = 1,
    kSparse = 2,     // granules must be touched before use
    kNoRead = 4,     // some bytes may not be read
    kNoWrite = 32,   // some bytes may not be written
    kDefined = 8,    // every byte is known to be defined: the bits need not be read
    kConstant = 16,  // a .const variable: kernels may not write
  };
  uint64_t base = 0, bytes = 0;
  uint32_t flags = 0;
  uint32_t index = 0;  // of the record with the rest
  bool live() const { return flags & kLive; }
  bool holds(uint64_t address, uint64_t count) const {
    return address >= base && count <= bytes && address - base <= bytes - count;
  }
};

}  // namespace kv::simt
