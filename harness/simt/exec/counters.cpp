// What an access costs the memory system: 32-byte sectors of global memory, wavefronts of the 32
// banks of shared memory (4 bytes wide; 8- and 16-byte accesses go by half and quarter warps), and
// bytes of global memory that the launch had not touched before.
#include <algorithm>

#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/probe.h"
#include "harness/simt/memory/layout.h"

namespace kv::simt {
namespace {

/// What the lanes of one access want.
struct Wanted {
  uint64_t address[32] = {};  // of shared memory the offset
  uint32_t bytes[32] = {};
  uint32_t lanes = 0;
};

uint64_t distinct_sectors(const Wanted& a) {
  uint64_t sectors[64];
  uint32_t count = 0;
  for (uint32_t mask = a.lanes; mask; mask &= mask - 1) {
    const int l = __builtin_ctz(mask);
    sectors[count++] = a.address[l] / 32;
    sectors[count++] = (a.address[l] + a.bytes[l] - 1) / 32;
  }
  std::sort(sectors, sectors + count);
  return uint64_t(std::unique(sectors, sectors + count) - sectors);
}

/// Extra wavefronts of the lanes [first, first + lanes).
uint64_t conflicts(const Wanted& a, uint32_t first, uint32_t lanes) {
  uint64_t words[32][32];
  uint32_t used[32] = {};
  uint32_t most = 0;
  for (uint32_t l = first; l < first + lanes; ++l) {
    if (!(a.lanes >> l & 1)) continue;
    for (uint32_t k = 0; k < std::max(1u, a.bytes[l] / 4); ++k) {
      const uint64_t word = a.address[l] / 4 + k;
      const uint32_t bank = word & 31;
      uint64_t* const end = words[bank] + used[bank];
      if (std::find(words[bank], end, word) != end || used[bank] == 32) continue;
      words[bank][used[bank]++] = word;
      most = std::max(most, used[bank]);
    }
  }
  return most ? most - 1 : 0;
}

void count_shared(kv_simt_counters& c, const Wanted& a, uint32_t bytes) {
  const uint32_t lanes = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
  ++c.shared_requests;
  for (uint32_t l = 0; l < 32; l += lanes) c.shared_bank_conflicts += conflicts(a, l, lanes);
}

void count_global(Warp& w, const Wanted& a, AccessKind kind) {
  kv_simt_counters& c = *w.launch->counters;
  LaunchCold& cold = *w.launch->cold;
  const uint64_t sectors = distinct_sectors(a);
  const auto distinct = [&](ByteSet& set) {
    uint64_t fresh = 0;
    for (uint32_t mask = a.lanes; mask; mask &= mask - 1) {
      const int l = __builtin_ctz(mask);
      fresh += set.add(a.address[l], a.bytes[l]);
    }
    return fresh;
  };
  if (kind != AccessKind::kStore) {
    ++c.global_load_requests;
    c.global_load_sectors += sectors;
    c.global_bytes_read_distinct += distinct(cold.bytes_read);
  }
  if (kind != AccessKind::kLoad) {
    ++c.global_store_requests;
    c.global_store_sectors += sectors;
    c.global_bytes_written_distinct += distinct(cold.bytes_written);
  }
}

uint64_t lane_address(Warp& w, const Ins* i, uint32_t lane) {
  switch (AddressMode(i->mode)) {
    case AddressMode::kConstant:
      return uint64_t(i->imm);
    case AddressMode::kRegister32:
      return uint32_t(slot<uint32_t>(w, i->r[0])[lane] + uint32_t(i->imm));
    default:
      return slot<uint64_t>(w, i->r[0])[lane] + uint64_t(i->imm);
  }
}

uint32_t lane_bytes(Warp& w, const Ins* i, uint32_t lane) {
  const uint32_t most = i->width;
  if (i->flags & memory_probe_flags::kIgnore) {
    return w.predicates[i->r[1]] >> lane & 1 ? 0 : most;
  }
  if (i->flags & memory_probe_flags::kSize) {
    return std::min(slot<uint32_t>(w, i->r[1])[lane], most);
  }
  return most;
}

}  // namespace

uint64_t ByteSet::add(uint64_t address, uint32_t bytes) {
  uint64_t fresh = 0;
  for (const uint64_t end = address + bytes; address < end;) {
    const uint64_t first = address % 64, count = std::min(end - address, 64 - first);
    const uint64_t bits = (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first;
    uint64_t& word = words_[address / 64];
    fresh += uint64_t(__builtin_popcountll(bits & ~word));
    word |= bits;
    address += count;
  }
  return fresh;
}

const Ins* probe_memory(Warp& w, const Ins* i) {
  Wanted shared, global;
  const uint32_t addressing = w.exec & (i->count == 32 ? ~0u : (1u << i->count) - 1);
  for (uint32_t mask = addressing; mask; mask &= mask - 1) {
    const auto l = uint32_t(__builtin_ctz(mask));
    uint64_t address = lane_address(w, i, l);
    const uint32_t bytes = lane_bytes(w, i, l);
    auto space = ptx::Space(i->space);
    if (space == ptx::Space::kGeneric && address - layout::kSharedWindow < layout::kWindowBytes) {
      space = ptx::Space::kShared;
      address -= layout::kSharedWindow;
    } else if (space == ptx::Space::kGeneric && address >= layout::kHeapBase) {
      space = ptx::Space::kGlobal;
    }
    if (bytes == 0 || (space != ptx::Space::kShared && space != ptx::Space::kGlobal)) continue;
    Wanted& to = space == ptx::Space::kShared ? shared : global;
    to.lanes |= 1u << l;
    to.address[l] = address;
    to.bytes[l] = bytes;
  }
  if (shared.lanes) count_shared(*w.launch->counters, shared, i->width);
  if (global.lanes) count_global(w, global, AccessKind(i->extra));
  KV_NEXT(w, i + 1);
}

}  // namespace kv::simt
