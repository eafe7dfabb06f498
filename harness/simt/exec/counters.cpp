// What an access costs the memory system: 32-byte sectors of global memory, wavefronts of the 32
// banks of shared memory (4 bytes wide; 8- and 16-byte accesses go by half and quarter warps).
#include <algorithm>

#include "harness/simt/exec/cold.h"

namespace kv::simt {
namespace {

uint64_t distinct_sectors(const uint8_t* base, const uint32_t* offsets, uint32_t bytes,
                          uint32_t mask) {
  uint64_t sectors[64];
  uint32_t count = 0;
  for (; mask; mask &= mask - 1) {
    const uint64_t begin = reinterpret_cast<uint64_t>(base) + offsets[__builtin_ctz(mask)];
    sectors[count++] = begin / 32;
    sectors[count++] = (begin + bytes - 1) / 32;
  }
  std::sort(sectors, sectors + count);
  return uint64_t(std::unique(sectors, sectors + count) - sectors);
}

/// Extra wavefronts of the lanes [first, first + lanes).
uint64_t conflicts(const uint32_t* offsets, uint32_t bytes, uint32_t mask, uint32_t first,
                   uint32_t lanes) {
  uint32_t words[32][32];
  uint32_t used[32] = {};
  uint32_t most = 0;
  for (uint32_t l = first; l < first + lanes; ++l) {
    if (!(mask >> l & 1)) continue;
    for (uint32_t k = 0; k < std::max(1u, bytes / 4); ++k) {
      const uint32_t word = offsets[l] / 4 + k, bank = word & 31;
      uint32_t* const end = words[bank] + used[bank];
      if (std::find(words[bank], end, word) != end || used[bank] == 32) continue;
      words[bank][used[bank]++] = word;
      most = std::max(most, used[bank]);
    }
  }
  return most ? most - 1 : 0;
}

}  // namespace

void count_access(Warp& w, const Ins*, const uint8_t* base, const uint32_t* offsets, uint32_t bytes,
                  bool shared, bool store) {
  kv_simt_counters& c = *w.launch->counters;
  if (shared) {
    const uint32_t lanes = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
    ++c.shared_requests;
    for (uint32_t l = 0; l < 32; l += lanes) {
      c.shared_bank_conflicts += conflicts(offsets, bytes, w.exec, l, lanes);
    }
    return;
  }
  const uint64_t sectors = distinct_sectors(base, offsets, bytes, w.exec);
  ++(store ? c.global_store_requests : c.global_load_requests);
  (store ? c.global_store_sectors : c.global_load_sectors) += sectors;
}

}  // namespace kv::simt
