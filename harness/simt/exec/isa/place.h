// Purpose: where the lanes of a memory access lie, and the checks of a whole warp at once.
// Contract: every function answers "certainly fine" or "ask the slow path"; none reports.
#pragma once

#include "harness/simt/check/global_race.h"
#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/isa/lanes.h"
#include "harness/simt/exec/isa/offsets.h"
#include "harness/simt/exec/isa/stamps512.h"
#include "harness/simt/memory/extent.h"
#include "harness/simt/memory/layout.h"

// The body of a handler whose locals escape into cold calls is a function of its own: else the
// compiler could not turn the step to the next instruction into a jump.
#define KV_ATTEMPT [[gnu::noinline]] static bool

namespace kv::simt::KV_ISA {
namespace {

/// Where the lanes of one access lie: base + off[l]. Lanes that do not execute repeat an active
/// one.
struct Place {
  alignas(64) u32 off[32];
  u8* base;
  u8* bits;      // definedness bit of base is bit 0 of *bits
  u32* writers;  // stamps; granule of base is element 0
  u32* readers;
  ChunkStamps* chunks;  // of global memory
  SharedChunk* shared_chunks;
  Extent* extent;  // null for shared memory
  bool in_order;   // full warp, lane l at off[0] + l * bytes
  bool together;   // every lane at off[0]
};

/// `kPattern`: somebody asks whether lanes are in order or together.
template <u32 kBytes, bool kPattern = true>
KV_INLINE bool shared_place(Warp& w, const Ins* i, u16 address, u64 window, u32 mask, Place& p) {
  Block& b = *w.block;
  if (i->mode == u8(AddressMode::kRegister32)) {
    const u32* a = slot<u32>(w, address);
    const u32 filler = a[__builtin_ctz(mask)];
    const u32 k = u32(i->imm);
    if (mask == ~0u) {
      KV_LANES p.off[l] = a[l] + k;
    } else {
      KV_LANES p.off[l] = ((mask & kLaneBit[l]) ? a[l] : filler) + k;
    }
  } else if (i->mode == u8(AddressMode::kRegister64)) {
    const u64* a = slot<u64>(w, address);
    const u64 k = u64(i->imm) - window;
    const u64 first = a[__builtin_ctz(mask)] + k;
    if (first >> 31 || !relative(a, k, mask, u32(first), p.off)) return false;
  } else {
    KV_LANES p.off[l] = u32(i->imm);
  }
  if (!fits<kBytes>(p.off, b.shared_bytes)) return false;
  p.base = b.shared;
  p.bits = b.shared_bits;
  p.writers = b.writers;
  p.readers = b.readers;
  p.shared_chunks = b.chunks;
  p.extent = nullptr;
  p.in_order = kPattern && mask == ~0u && consecutive<kBytes>(p.off);
  p.together = kPattern && !p.in_order && all_equal(p.off);
  return true;
}

template <u32 kBytes, bool kWrite>
KV_INLINE bool global_place(Warp& w, u16 hint, const u64* a, u64 offset, u32 mask, Place& p) {
  const u64 first = a[__builtin_ctz(mask)] + offset;
  Extent* e = w.launch->hints[hint];
  if (!e || first - e->base >= e->bytes) [[unlikely]] {
    e = find_extent(first);
    if (!e) return false;
    w.launch->hints[hint] = e;
  }
  constexpr u32 kState = u32{Extent::kLive} | (kWrite ? u32{Extent::kConstant} : 0);
  if ((e->flags & kState) != Extent::kLive) return false;
  u64 origin = e->base;
  if (first - origin >= u64(1) << 30) origin = (first - (u64(1) << 29)) & ~u64(255);
  if (!relative(a, offset - origin, mask, u32(first - origin), p.off)) return false;
  if (!fits<kBytes>(p.off, e->base + e->bytes - origin)) return false;
  if ((e->flags & (kWrite ? Extent::kNoWrite : Extent::kNoRead)) &&
      !rights_allow(w, *e, origin, p.off, kBytes, kWrite)) {
    return false;
  }
  if ((e->flags & Extent::kSparse) && !touch_lanes(*e, origin, p.off, kBytes)) return false;
  const u64 bit = origin - layout::kHeapBase;
  p.base = reinterpret_cast<u8*>(origin);
  p.bits = reinterpret_cast<u8*>(layout::kBitsBase + (bit >> 3));
  p.writers = reinterpret_cast<u32*>(layout::kWriterBase) + (bit >> w.launch->global_shift);
  p.readers = reinterpret_cast<u32*>(layout::kReaderBase) + (bit >> w.launch->global_shift);
  p.chunks = reinterpret_cast<ChunkStamps*>(layout::kChunkBase) + (bit >> ChunkStamps::kShift);
  p.extent = e;
  p.in_order = mask == ~0u && consecutive<kBytes>(p.off);
  p.together = !p.in_order && all_equal(p.off);
  return true;
}

// --- definedness

template <u32 kBytes>
KV_INLINE u32 lane_bits(const u8* bits, u32 off) {
  if (kBytes == 16) {
    u16 v;
    __builtin_memcpy(&v, bits + (off >> 3), 2);
    return v;
  }
  return kBytes == 8 ? bits[off >> 3] : (bits[off >> 3] >> (off & 7)) & ((1u << kBytes) - 1);
}
template <u32 kBytes>
inline constexpr u32 kAllBytes = (1u << kBytes) - 1;

/// `kBytes` * 32 consecutive bits starting at a byte: all ones?
template <u32 kBytes>
KV_INLINE bool whole_run_defined(const u8* bits) {
  u64 all = ~u64(0);
  for (u32 k = 0; k < kBytes * 4; k += 8) {
    u64 v = ~u64(0);
    __builtin_memcpy(&v, bits + k, kBytes * 4 - k < 8 ? kBytes * 4 - k : 8);
    all &= v;
  }
  return all == ~u64(0);
}

/// Lanes that do not execute repeat one that does.
template <u32 kBytes>
KV_INLINE bool all_defined(const Place& p) {
  if (p.in_order && (p.off[0] & 7) == 0) return whole_run_defined<kBytes>(p.bits + (p.off[0] >> 3));
  if (p.together) return lane_bits<kBytes>(p.bits, p.off[0]) == kAllBytes<kBytes>;
  u32 all = kAllBytes<kBytes>;
  for (int l = 0; l < 32; ++l) all &= lane_bits<kBytes>(p.bits, p.off[l]);
  return all == kAllBytes<kBytes>;
}

template <u32 kBytes>
KV_INLINE void define(const Place& p, u32 mask) {
  if (p.in_order && (p.off[0] & 7) == 0) {
    __builtin_memset(p.bits + (p.off[0] >> 3), 0xff, kBytes * 4);
    return;
  }
  if (all_defined<kBytes>(p)) return;
  for (; mask; mask &= mask - 1) {
    const u32 off = p.off[__builtin_ctz(mask)];
    if (kBytes == 16) {
      const u16 ones = 0xffff;
      __builtin_memcpy(p.bits + (off >> 3), &ones, 2);
    } else {
      p.bits[off >> 3] |= u8(kAllBytes<kBytes> << (off & 7));
    }
  }
}

// --- races; true means suspicious

template <bool kWrite>
KV_INLINE bool four_race(const Place& p, u32 at, Stamps mine, Ordered before) {
  return kWrite ? write_four(p.writers + at, p.readers + at, mine, before)
                : read_four(p.writers + at, p.readers + at, mine, before);
}

/// Granules [at, at + granules) of one lane.
template <bool kWrite>
KV_INLINE bool shared_granules_race(const Place& p, u32 at, u32 granules, u32 me, Ordered before) {
  bool bad = false;
  u32 g = 0;
  for (; g + 4 <= granules; g += 4) bad |= four_race<kWrite>(p, at + g, all_stamps(me), before);
  for (; g < granules; ++g) {
    bad |= kWrite ? write_one(p.writers + at + g, p.readers + at + g, me, before)
                  : read_one(p.writers + at + g, p.readers + at + g, me, before);
  }
  return bad;
}

KV_INLINE void open_chunk_at(const Warp& w, const Place& p, u32 off) {
  const u32 to_granule = SharedChunk::kShift - w.launch->shared_shift;
  const u32 chunk = off >> SharedChunk::kShift, first = chunk << to_granule;
  open_chunk(p.shared_chunks + chunk, {p.writers + first, p.readers + first, 1u << to_granule},
             w.clock.base, w.block->oldest);
}

/// All of a chunk by a lane stamped `me`, where that was not settled at once.
template <bool kWrite>
KV_ATTEMPT shared_chunk_races(const Warp& w, const Place& p, u32 off, u32 me) {
  if (!is_split(p.shared_chunks[off >> SharedChunk::kShift], w.block->oldest)) return true;
  open_chunk_at(w, p, off);
  const u32 shift = w.launch->shared_shift;
  return shared_granules_race<kWrite>(p, off >> shift, 16u >> shift, me, w.clock.ordered());
}

/// The same for 16 bytes of a lane, aligned.
template <bool kWrite>
KV_INLINE bool shared_chunk_race(const Warp& w, const Place& p, u32 off, u32 me) {
  return touch_chunk<kWrite>(p.shared_chunks + (off >> SharedChunk::kShift), me, w.clock.ordered(),
                             w.block->oldest) &&
         shared_chunk_races<kWrite>(w, p, off, me);
}

/// Parts of chunks.
KV_INLINE void open_chunks(const Warp& w, const Place& p, u32 mask) {
  u32 last = ~0u;
  for (; mask; mask &= mask - 1) {
    const u32 off = p.off[__builtin_ctz(mask)];
    if (off >> SharedChunk::kShift == last) continue;
    last = off >> SharedChunk::kShift;
    open_chunk_at(w, p, off);
  }
}

/// Reads of one address by the lanes of `mask`: the first two and the last leave what all would.
template <u32 kBytes>
KV_INLINE bool together_race(Warp& w, const Place& p, u32 mask) {
  const u32 shift = w.launch->shared_shift, first = p.off[0] >> shift, rest = mask & (mask - 1);
  const u32 lanes[] = {u32(__builtin_ctz(mask)), u32(__builtin_ctz(rest ? rest : mask)),
                       31 - u32(__builtin_clz(mask))};
  if (w.launch->shared_chunks) open_chunk_at(w, p, p.off[0]);
  bool bad = false;
  for (const u32 l : lanes) {
    bad |=
        shared_granules_race<false>(p, first, kBytes >> shift, w.clock.base + l, w.clock.ordered());
  }
  return bad;
}

template <u32 kBytes, bool kWrite>
KV_INLINE bool shared_race(Warp& w, const Place& p, u32 mask) {
  const u32 shift = w.launch->shared_shift, base = w.clock.base;
  const Ordered before = w.clock.ordered();
  const u32 granules = kBytes >> shift;
  bool bad = false;
#ifdef __AVX512BW__
  if (mask == ~0u && settle_lanes<kBytes, kWrite>(w, p.off, p.in_order)) return false;
#endif
  if (!kWrite && kBytes < 16 && p.together) return together_race<kBytes>(w, p, mask);
  if (w.launch->shared_chunks) {
    if (kBytes == 16) {
      for (; mask; mask &= mask - 1) {
        const u32 l = u32(__builtin_ctz(mask));
        bad |= shared_chunk_race<kWrite>(w, p, p.off[l], base + l);
      }
      return bad;
    }
    open_chunks(w, p, mask);
  }
  if (granules == 1 && p.in_order) {
    const u32 first = p.off[0] >> shift;
    for (u32 l = 0; l < 32; l += 4) {
      bad |= four_race<kWrite>(p, first + l, all_stamps(base + l) + Stamps{0, 1, 2, 3}, before);
    }
    return bad;
  }
  for (; mask; mask &= mask - 1) {
    const u32 l = u32(__builtin_ctz(mask));
    bad |= shared_granules_race<kWrite>(p, p.off[l] >> shift, granules, base + l, before);
  }
  return bad;
}

/// Granules [at, at + granules).
template <bool kWrite>
KV_INLINE bool granules_race(const Warp& w, const Place& p, u32 at, u32 granules) {
  const u32 me = w.block->global_stamp, floor = w.launch->global_floor;
  bool bad = false;
  u32 g = 0;
  for (; g + 4 <= granules; g += 4) {
    bad |= kWrite ? global_write_four(p.writers + at + g, p.readers + at + g, me, floor)
                  : global_read_four(p.writers + at + g, p.readers + at + g, me, floor);
  }
  for (; g < granules; ++g) {
    bad |= kWrite ? global_write_one(p.writers + at + g, p.readers + at + g, me, floor)
                  : global_read_one(p.writers + at + g, p.readers + at + g, me, floor);
  }
  return bad;
}

/// Where chunks have no stamps of their own. Lanes of a block have one stamp.
template <u32 kBytes, bool kWrite>
KV_ATTEMPT lanes_race(const Warp& w, const Place& p, u32 mask) {
  const u32 shift = w.launch->global_shift;
  if (p.in_order) return granules_race<kWrite>(w, p, p.off[0] >> shift, 32 * kBytes >> shift);
  bool bad = false;
  for (; mask; mask &= mask - 1) {
    bad |= granules_race<kWrite>(w, p, p.off[__builtin_ctz(mask)] >> shift, kBytes >> shift);
    if (p.together) break;
  }
  return bad;
}

/// A chunk that was not settled at once.
template <bool kWrite>
KV_ATTEMPT chunk_races(const Warp& w, const Place& p, u32 chunk) {
  const u32 floor = w.launch->global_floor, shift = w.launch->global_shift;
  if (!is_split(p.chunks[chunk], floor)) {
    return touch_chunk<kWrite>(p.chunks + chunk, w.block->global_stamp, floor);
  }
  const u32 to_granule = ChunkStamps::kShift - shift;
  return granules_race<kWrite>(w, p, chunk << to_granule, 1u << to_granule);
}

/// Parts of chunks, which are split from now on.
template <u32 kBytes, bool kWrite>
KV_ATTEMPT parts_race(const Warp& w, const Place& p, u32 mask) {
  const u32 me = w.block->global_stamp, floor = w.launch->global_floor;
  const u32 shift = w.launch->global_shift, to_granule = ChunkStamps::kShift - shift;
  bool bad = false;
  for (; mask; mask &= mask - 1) {
    const u32 off = p.off[__builtin_ctz(mask)], chunk = off >> ChunkStamps::kShift;
    if (!is_split(p.chunks[chunk], floor)) {
      const u32 first = chunk << to_granule;
      split_chunk(p.chunks + chunk, p.writers + first, p.readers + first, 1u << to_granule, me,
                  floor);
    }
    bad |= granules_race<kWrite>(w, p, off >> shift, kBytes >> shift);
    if (p.together) break;
  }
  return bad;
}

/// Do lanes touch whole chunks, 16 / kBytes neighbours each? Lanes that do not execute repeat one
/// that does, so a chunk that lacks some is none.
template <u32 kBytes>
KV_INLINE bool whole_chunks(const u32* off) {
  constexpr u32 kLanes = 16 / kBytes;
  u32 wrong = 0;
  for (u32 l = 0; l < 32; ++l) {
    const u32 first = off[l / kLanes * kLanes];
    wrong |= (off[l] ^ (first + l % kLanes * kBytes)) | (first & 15);
  }
  return wrong == 0;
}

template <u32 kBytes, bool kWrite>
KV_INLINE bool global_race(Warp& w, const Place& p, u32 mask) {
  if (w.launch->check_stream_race) return true;  // the cold path looks at older work too
  if (!w.launch->whole_chunks) return lanes_race<kBytes, kWrite>(w, p, mask);
  const u32 me = w.block->global_stamp, floor = w.launch->global_floor;
  bool bad = false;
  if (p.in_order && (p.off[0] & 15) == 0) {
    const u32 first = p.off[0] >> ChunkStamps::kShift;
    for (u32 c = first; c < first + 2 * kBytes; c += 2) {
      if (touch_two_chunks<kWrite>(p.chunks + c, me, floor)) [[unlikely]] {
        bad |= chunk_races<kWrite>(w, p, c) | chunk_races<kWrite>(w, p, c + 1);
      }
    }
    return bad;
  }
  constexpr u32 kLanes = kBytes < 16 ? 16 / kBytes : 1;
  if (kBytes < 16 && (p.together || !whole_chunks<kBytes>(p.off))) {
    return parts_race<kBytes, kWrite>(w, p, mask);
  }
  for (; mask; mask &= mask - 1) {
    const u32 l = u32(__builtin_ctz(mask)), chunk = p.off[l] >> ChunkStamps::kShift;
    if (touch_chunk<kWrite>(p.chunks + chunk, me, floor)) [[unlikely]] {
      bad |= chunk_races<kWrite>(w, p, chunk);
    }
    if (p.together) break;
    mask &= ~(((1u << kLanes) - 1) << l) | 1u << l;
  }
  return bad;
}

}  // namespace
}  // namespace kv::simt::KV_ISA
