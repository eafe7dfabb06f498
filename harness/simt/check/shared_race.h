// Purpose: which accesses to shared memory are ordered, and which race.
//
// Model (FastTrack, Flanagan and Freund, PLDI 2009, with warps as threads): every warp has a clock
// and remembers for every other warp the latest clock that is ordered before it (`seen`). A barrier
// joins what its members saw and moves their clocks on; so does bar.warp.sync for one warp. A
// strong write hands on what its warp had done and seen at its last fence or barrier (`fenced`).
// Every granule of shared memory (1, 2 or 4 bytes, the narrowest access of the kernel) has the
// stamp of its last writer and of its last readers. Strong accesses (atomics, volatile) do not race
// with each other. Two accesses of which one writes race when the earlier stamp is not ordered
// before the later access and they come from different lanes.
//
// Stamp: clock << 13 | strong << 12 | several warps << 11 | warp << 6 | several lanes << 5 | lane.
// A warp keeps `floor`: every stamp up to it is ordered before the warp, so that one comparison of
// four stamps settles nearly all accesses; only what is left asks `conflicts`.
//
// A chunk of 16 bytes has a pair of stamps for all its granules, as in global memory
// (global_race.h), until a lane touches less than all of it. It is whole again when everything that
// touched it is ordered before every warp of the block: at a barrier of the whole block, mostly.
//
// Contract: clocks only grow, from block to block too: stamps of an earlier block are stale.
#pragma once

#include "harness/simt/check/race_stamp.h"

namespace kv::simt {

/// What is certainly ordered before an access of a warp: every stamp up to `floor`, and of its own
/// lanes those up to `met`, when they met the last time. A fence moves the clock on, not these.
struct Ordered {
  uint32_t floor, met;
};

struct WarpClock {
  static constexpr uint32_t kClockShift = 13, kClockMax = (1u << 19) - 2;
  static constexpr uint32_t kStrong = 1u << 12;
  static constexpr uint32_t kWarps = 1u << 11, kLanes = 1u << 5;
  static constexpr uint32_t kWarpField = 31u << 6;
  static constexpr uint32_t kCodeMask = (1u << kClockShift) - 1;

  uint32_t base = 0;   // stamp of lane 0
  uint32_t floor = 0;  // largest stamp that is certainly ordered before this warp
  uint32_t seen[32] = {};
  uint32_t fenced[32] = {};  // what a strong write publishes
  uint32_t fence_clock = 0;  // of the last fence since a barrier; 0: none

  KV_INLINE Ordered ordered() const {
    return {floor, seen[base >> 6 & 31] << kClockShift | kCodeMask};
  }
  uint32_t clock() const { return base >> kClockShift; }
  uint32_t warp() const { return base >> 6 & 31; }
  /// Stamp of lane 0 for a strong write: with a fence before it, it is part of what it publishes.
  uint32_t strong_base() const {
    return fence_clock ? fence_clock << kClockShift | (base & kCodeMask) : base;
  }
  /// Starts at `clock`, everything before it seen.
  void start(uint32_t warp, uint32_t clock);
  /// Moves on to `clock`, all that `joined` saw being ordered before.
  void join(const uint32_t (&joined)[32], uint32_t clock);
  /// bar.warp.sync: the lanes of this warp see each other. At the largest clock they stay unordered
  /// only in name: nothing is reported for lack of clocks.
  void sync_lanes();
  /// A fence: what the warp has done and seen may be published, what it does from now on not. Its
  /// lanes are no nearer to each other.
  void fence();
  /// A strong write: into `joined` goes what was fenced. The lanes of the warp see that, too.
  void publish_fenced(uint32_t* joined);
  /// Takes over what `joined` saw, without moving on.
  void absorb(const uint32_t* joined);
  /// What others see of this warp when it arrives at a barrier.
  void publish(uint32_t* joined) const;
  /// True if `stamp` (above floor) is unordered with an access of lane stamp `me` of this warp.
  bool conflicts(uint32_t stamp, uint32_t me) const;
  /// Of several warps a stamp names one of those with the latest clock: is that one, if another,
  /// unordered? The rest may all be ordered, where not every sync is by the whole block.
  bool certain(uint32_t stamp) const {
    const uint32_t other = stamp >> 6 & 31;
    return other != warp() && stamp >> kClockShift > seen[other];
  }
};

/// Stamps that are perhaps unordered with an access of lanes `mine`.
KV_INLINE Stamps unsettled(Stamps stamps, Stamps mine, Stamps low) {
  return (stamps > low) & (stamps != mine);
}

/// Those of the same warp before its lanes met: `floor` does not say it while others are behind.
KV_INLINE Stamps met_since(Stamps stamps, Stamps mine, uint32_t met) {
  const Stamps other_warp = (stamps ^ mine) & (WarpClock::kWarpField | WarpClock::kWarps);
  return (other_warp == 0) & (stamps <= all_stamps(met));
}
KV_INLINE bool met_since(uint32_t stamp, uint32_t me, uint32_t met) {
  return ((stamp ^ me) & (WarpClock::kWarpField | WarpClock::kWarps)) == 0 && stamp <= met;
}
KV_INLINE bool is_unsettled(uint32_t stamp, uint32_t me, Ordered before) {
  return stamp > before.floor && stamp != me && !met_since(stamp, me, before.met);
}

/// Settles a read of four granules by lanes `mine`: true if some writer is perhaps unordered.
KV_INLINE bool read_four(const uint32_t* writers, uint32_t* readers, Stamps mine, Ordered before) {
  const Stamps w = load_stamps(writers), r = load_stamps(readers), low = all_stamps(before.floor);
  const Stamps bad = unsettled(w, mine, low);
  if (!any_set(bad | unsettled(r, mine, low))) {
    store_stamps(readers, mine);
    return false;
  }
  const Stamps x = r ^ mine;
  const Stamps other_warp = (x & (WarpClock::kWarpField | WarpClock::kWarps)) != 0;
  const Stamps other_lane = (r > all_stamps(before.met)) & ((x & 63) != 0);
  const Stamps later = r > mine ? r : mine;
  Stamps next = mine | (other_lane & WarpClock::kLanes);
  next = other_warp ? (later | WarpClock::kWarps) : next;
  next = r <= low ? mine : next;
  store_stamps(readers, next);
  return any_set(bad) && any_set(bad & ~met_since(w, mine, before.met));
}

KV_INLINE bool write_four(uint32_t* writers, const uint32_t* readers, Stamps mine, Ordered before) {
  const Stamps w = load_stamps(writers), r = load_stamps(readers), low = all_stamps(before.floor);
  const Stamps writing = unsettled(w, mine, low), reading = unsettled(r, mine, low);
  if (any_set(writing | reading) && any_set((writing & ~met_since(w, mine, before.met)) |
                                            (reading & ~met_since(r, mine, before.met)))) {
    return true;
  }
  store_stamps(writers, mine);
  return false;
}

KV_INLINE uint32_t next_reader(uint32_t r, uint32_t me, Ordered before) {
  if (r <= before.floor) return me;
  const uint32_t x = r ^ me;
  if (x & (WarpClock::kWarpField | WarpClock::kWarps)) {
    return (r > me ? r : me) | WarpClock::kWarps;
  }
  return r > before.met && (x & 63) ? me | WarpClock::kLanes : me;
}

KV_INLINE bool read_one(const uint32_t* writer, uint32_t* reader, uint32_t me, Ordered before) {
  *reader = next_reader(*reader, me, before);
  return is_unsettled(*writer, me, before);
}

KV_INLINE bool write_one(uint32_t* writer, const uint32_t* reader, uint32_t me, Ordered before) {
  if (is_unsettled(*writer, me, before) || is_unsettled(*reader, me, before)) return true;
  *writer = me;
  return false;
}

/// The stamps of a chunk, or twice the mark of a split one: a clock and all ones. No access to all
/// of a chunk is strong, so no stamp of one is such a mark.
struct SharedChunk {
  static constexpr uint32_t kShift = 4;  // 16 bytes
  static constexpr uint32_t kSplit = WarpClock::kCodeMask;
  uint32_t writer = 0, reader = 0;
};

/// `oldest`: everything up to it is ordered before every warp of the block.
KV_INLINE bool is_split(const SharedChunk& chunk, uint32_t oldest) {
  return chunk.writer > oldest && (chunk.writer & SharedChunk::kSplit) == SharedChunk::kSplit;
}

/// Where the stamps of a chunk's granules are, and how many they are.
struct ChunkGranules {
  uint32_t* writers;
  uint32_t* readers;
  uint32_t count;
};

/// Before an access, stamped `me`, to granules of a chunk: they have stamps of their own, which are
/// to be looked at as long as `me` is not older than everything.
KV_INLINE void open_chunk(SharedChunk* chunk, ChunkGranules granules, uint32_t me,
                          uint32_t oldest) {
  const uint32_t mark = me | SharedChunk::kSplit;
  if (is_split(*chunk, oldest)) {
    if (chunk->writer < mark) chunk->writer = chunk->reader = mark;
    return;
  }
  const uint32_t w = chunk->writer > oldest ? chunk->writer : 0;
  const uint32_t r = chunk->reader > oldest ? chunk->reader : 0;
  for (uint32_t g = 0; g < granules.count; g += 4) {
    store_stamps(granules.writers + g, all_stamps(w));
    store_stamps(granules.readers + g, all_stamps(r));
  }
  chunk->writer = chunk->reader = mark;
}

/// Settles an access to all of a chunk. True: it is split, or perhaps races; nothing is changed.
template <bool kWrite>
KV_INLINE bool touch_chunk(SharedChunk* chunk, uint32_t me, Ordered before, uint32_t oldest) {
  const uint32_t w = chunk->writer, r = chunk->reader;
  if (is_unsettled(w, me, before) || is_split(*chunk, oldest)) return true;
  if (kWrite) {
    if (is_unsettled(r, me, before)) return true;
    chunk->writer = me;
  } else {
    chunk->reader = next_reader(r, me, before);
  }
  return false;
}

}  // namespace kv::simt
