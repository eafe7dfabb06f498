// Purpose: stamps of shared memory for a whole warp in order, with AVX-512 (shared_race.h has the
// model).
// Contract: true: settled, and the stamps are as the lanes one by one would leave them. False: ask
// lane by lane; what has changed by then those would change in the same way.
#pragma once

#include "harness/simt/check/shared_race.h"
#include "harness/simt/exec/isa/offsets.h"

#ifdef __AVX512BW__

namespace kv::simt::KV_ISA {
namespace {

/// What the comparisons need of a warp.
struct Order {
  Words base, floor, met, oldest;
  KV_INLINE static Order of(const Warp& w) {
    const Ordered before = w.clock.ordered();
    return {all_words(w.clock.base), all_words(before.floor), all_words(before.met),
            all_words(w.block->oldest)};
  }
  /// Of another warp, or of several.
  KV_INLINE static __mmask16 other_warp(__mmask16 among, Words stamps, Words mine) {
    return _mm512_mask_test_epi32_mask(among, _mm512_xor_si512(stamps, mine),
                                       all_words(WarpClock::kWarpField | WarpClock::kWarps));
  }
  /// is_unsettled() of shared_race.h.
  KV_INLINE u32 unsettled(Words stamps, Words mine) const {
    const __mmask16 recent =
        _mm512_mask_cmpneq_epi32_mask(_mm512_cmpgt_epu32_mask(stamps, floor), stamps, mine);
    return u32(_mm512_mask_cmpgt_epu32_mask(recent, stamps, met) |
               other_warp(recent, stamps, mine));
  }
  /// Marks of split chunks.
  KV_INLINE u32 split(Words stamps) const {
    const Words all = all_words(SharedChunk::kSplit);
    return _mm512_mask_cmpeq_epi32_mask(_mm512_cmpgt_epu32_mask(stamps, oldest),
                                        _mm512_and_si512(stamps, all), all);
  }
  /// next_reader() of shared_race.h.
  KV_INLINE Words readers_after(Words stamps, Words mine) const {
    const __mmask16 recent = _mm512_cmpgt_epu32_mask(stamps, floor);
    const __mmask16 warps = other_warp(recent, stamps, mine);
    const __mmask16 unmet = _mm512_mask_cmpgt_epu32_mask(recent & ~warps, stamps, met);
    const __mmask16 lanes =
        _mm512_mask_test_epi32_mask(unmet, _mm512_xor_si512(stamps, mine), all_words(63));
    const Words own = _mm512_mask_or_epi32(mine, lanes, mine, all_words(WarpClock::kLanes));
    return _mm512_mask_or_epi32(own, warps, _mm512_max_epu32(stamps, mine),
                                all_words(WarpClock::kWarps));
  }
};

constexpr __mmask16 kWriters = 0x5555, kReaders = 0xaaaa;  // of chunks side by side

/// Accesses to all of eight chunks, stamped `mine`; 0: settled, and `stamps` is what they leave.
template <bool kWrite>
KV_INLINE u32 touch_eight(const Order& order, Words& stamps, Words mine) {
  const u32 other = order.unsettled(stamps, mine) & (kWrite ? 0xffff : kWriters);
  const u32 doubt = other | order.split(stamps);
  const Words next = kWrite ? mine : order.readers_after(stamps, mine);
  stamps = _mm512_mask_mov_epi32(stamps, kWrite ? kWriters : kReaders, next);
  return doubt;
}

/// Lane l touches all of chunk `chunks`[l].
template <bool kWrite>
KV_INLINE bool settle_chunks(const Warp& w, SharedChunk* chunks) {
  const Order order = Order::of(w);
  const Words pairs = _mm512_add_epi32(order.base, _mm512_srli_epi32(lane_numbers(), 1));
  Words stamps[4];
  u32 doubt = 0;
  for (u32 k = 0; k < 4; ++k) {
    stamps[k] = _mm512_loadu_si512(chunks + 8 * k);
    doubt |= touch_eight<kWrite>(order, stamps[k], _mm512_add_epi32(pairs, all_words(8 * k)));
  }
  if (doubt) return false;
  for (u32 k = 0; k < 4; ++k) _mm512_storeu_si512(chunks + 8 * k, stamps[k]);
  return true;
}

KV_INLINE Words eight_chunks(const SharedChunk* chunks, const u32* off) {
  const auto two = [&](int k) __attribute__((always_inline)) {
    const auto* const low = chunks + (off[k] >> SharedChunk::kShift);
    const auto* const high = chunks + (off[k + 1] >> SharedChunk::kShift);
    const __m128 half = _mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(low)));
    return _mm_castps_si128(_mm_loadh_pi(half, reinterpret_cast<const __m64*>(high)));
  };
  const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(two(0)), two(2), 1);
  const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(two(4)), two(6), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/// Lanes 0 .. kLanes - 1 touch all of the chunks at the offsets `off`, wherever they are. `kApart`:
/// each with a stamp of its own; two of them at one chunk are not settled.
template <bool kWrite, int kLanes, bool kApart>
KV_INLINE bool settle_scattered(const Warp& w, SharedChunk* chunks, const u32* off) {
  const Order order = Order::of(w);
  const Words pairs = _mm512_srli_epi32(lane_numbers(), 1);
  alignas(64) Words before[kLanes / 8], after[kLanes / 8];
  u32 doubt = 0;
  for (int k = 0; k < kLanes / 8; ++k) {
    const Words mine = kApart ? _mm512_add_epi32(pairs, all_words(w.clock.base + 8 * u32(k)))
                              : all_words(w.clock.base | WarpClock::kLanes);
    before[k] = after[k] = eight_chunks(chunks, off + 8 * k);
    doubt |= touch_eight<kWrite>(order, after[k], mine);
  }
  if (doubt) return false;
  const auto stamp = [&](int l) __attribute__((always_inline))->u32& {
    SharedChunk& chunk = chunks[off[l] >> SharedChunk::kShift];
    return kWrite ? chunk.writer : chunk.reader;
  };
  constexpr int kWhich = kWrite ? 0 : 1;
  const u32* const was = reinterpret_cast<const u32*>(before) + kWhich;
  const u32* const is = reinterpret_cast<const u32*>(after) + kWhich;
  for (int l = 0; l < kLanes; ++l) stamp(l) = is[2 * l];
  if (!kApart) return true;
  u32 lost = 0;
  for (int l = 0; l < kLanes; ++l) lost |= stamp(l) ^ is[2 * l];
  if (lost == 0) [[likely]]
    return true;
  for (int l = 0; l < kLanes; ++l) stamp(l) = was[2 * l];
  return false;
}

/// The granules' own stamps are to be used: chunks are marked as split from now on. 1: they were,
/// 0: everything that touched them is ordered before all warps, -1: neither.
KV_INLINE int open_eight(const Order& order, SharedChunk* chunks) {
  const Words stamps = _mm512_loadu_si512(chunks);
  const Words mark = _mm512_or_si512(order.base, all_words(SharedChunk::kSplit));
  const bool old = _mm512_cmpgt_epu32_mask(stamps, order.oldest) == 0;
  if (!old && order.split(stamps) != 0xffff) return -1;
  _mm512_storeu_si512(chunks, _mm512_max_epu32(stamps, mark));
  return old ? 0 : 1;
}

/// Accesses to 16 granules, stamped `mine`; 0: settled.
template <bool kWrite>
KV_INLINE u32 touch_granules(const Order& order, u32* writers, u32* readers, Words mine) {
  const Words w = _mm512_loadu_si512(writers), r = _mm512_loadu_si512(readers);
  const u32 doubt = order.unsettled(w, mine) | (kWrite ? order.unsettled(r, mine) : 0);
  if (doubt) return doubt;
  _mm512_storeu_si512(kWrite ? writers : readers, kWrite ? mine : order.readers_after(r, mine));
  return 0;
}

/// Lane l touches granule l of `writers` and `readers`, the granules of eight chunks.
template <bool kWrite>
KV_INLINE bool settle_granules(const Warp& w, SharedChunk* chunks, u32* writers, u32* readers) {
  const Order order = Order::of(w);
  const Words low = _mm512_add_epi32(order.base, lane_numbers());
  const Words high = _mm512_add_epi32(low, all_words(16));
  const int opened = chunks ? open_eight(order, chunks) : 1;
  if (opened < 0) return false;
  if (opened > 0) {
    return (touch_granules<kWrite>(order, writers, readers, low) |
            touch_granules<kWrite>(order, writers + 16, readers + 16, high)) == 0;
  }
  const Words none = _mm512_setzero_si512();
  _mm512_storeu_si512(writers, kWrite ? low : none);
  _mm512_storeu_si512(writers + 16, kWrite ? high : none);
  _mm512_storeu_si512(readers, kWrite ? none : low);
  _mm512_storeu_si512(readers + 16, kWrite ? none : high);
  return true;
}

/// All lanes touch kBytes each; `in_order`: side by side.
template <u32 kBytes, bool kWrite>
KV_INLINE bool settle_lanes(const Warp& w, const u32* offsets, bool in_order) {
  const u32 off = offsets[0];
  SharedChunk* const chunks = w.block->chunks + (off >> SharedChunk::kShift);
  if (kBytes == 16) {
    return w.launch->shared_chunks &&
           (in_order ? settle_chunks<kWrite>(w, chunks)
                     : settle_scattered<kWrite, 32, true>(w, w.block->chunks, offsets));
  }
  if (kBytes != 4 || w.launch->shared_shift != 2 || !in_order || (off & 15) != 0) return false;
  return settle_granules<kWrite>(w, w.launch->shared_chunks ? chunks : nullptr,
                                 w.block->writers + off / 4, w.block->readers + off / 4);
}

}  // namespace
}  // namespace kv::simt::KV_ISA

#endif
