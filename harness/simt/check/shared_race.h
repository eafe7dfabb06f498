// Purpose: which accesses to shared memory are ordered, and which race.
//
// Model (FastTrack, Flanagan and Freund, PLDI 2009, with warps as threads): every warp has a clock
// and remembers for every other warp the latest clock that is ordered before it (`seen`). A barrier
// joins what its members saw and moves their clocks on; so does bar.warp.sync for one warp. Every
// granule of shared memory (1, 2 or 4 bytes, the narrowest access of the kernel) has the stamp of
// its last writer and of its last readers. Strong accesses (atomics, volatile) do not race with
// each other. Two accesses of which one writes race when the earlier stamp is not ordered before
// the later access and they come from different lanes.
//
// Stamp: clock << 13 | strong << 12 | several warps << 11 | warp << 6 | several lanes << 5 | lane.
// A warp keeps `floor`: every stamp up to it is ordered before the warp, so that one comparison of
// four stamps settles nearly all accesses; only what is left asks `conflicts`.
//
// Contract: clocks only grow, from block to block too: stamps of an earlier block are stale.
#pragma once

#include "harness/simt/check/race_stamp.h"

namespace kv::simt {

struct WarpClock {
  static constexpr uint32_t kClockShift = 13, kClockMax = (1u << 19) - 2;
  static constexpr uint32_t kStrong = 1u << 12;
  static constexpr uint32_t kWarps = 1u << 11, kLanes = 1u << 5;
  static constexpr uint32_t kWarpField = 31u << 6;

  uint32_t base = 0;   // stamp of lane 0
  uint32_t floor = 0;  // largest stamp that is certainly ordered before this warp
  uint32_t seen[32] = {};

  uint32_t clock() const { return base >> kClockShift; }
  uint32_t warp() const { return base >> 6 & 31; }
  /// Starts at `clock`, everything before it seen.
  void start(uint32_t warp, uint32_t clock);
  /// Moves on to `clock`, all that `joined` saw being ordered before.
  void join(const uint32_t (&joined)[32], uint32_t clock);
  /// bar.warp.sync: the lanes of this warp see each other. At the largest clock they stay unordered
  /// only in name: nothing is reported for lack of clocks.
  void sync_lanes();
  /// Takes over what `joined` saw, without moving on.
  void absorb(const uint32_t* joined);
  /// What others see of this warp when it arrives at a barrier.
  void publish(uint32_t* joined) const;
  /// True if `stamp` (above floor) is unordered with an access of lane stamp `me` of this warp.
  bool conflicts(uint32_t stamp, uint32_t me) const;
};

/// Stamps that are perhaps unordered with an access of lanes `mine`.
KV_INLINE Stamps unsettled(Stamps stamps, Stamps mine, Stamps low) {
  return (stamps > low) & (stamps != mine);
}

/// Settles a read of four granules by lanes `mine`: true if some writer is perhaps unordered.
KV_INLINE bool read_four(const uint32_t* writers, uint32_t* readers, Stamps mine, uint32_t floor) {
  const Stamps w = load_stamps(writers), r = load_stamps(readers), low = all_stamps(floor);
  const Stamps bad = unsettled(w, mine, low);
  if (!any_set(bad | unsettled(r, mine, low))) {
    store_stamps(readers, mine);
    return false;
  }
  const Stamps x = r ^ mine;
  const Stamps other_warp = (x & (WarpClock::kWarpField | WarpClock::kWarps)) != 0;
  const Stamps other_lane = (x >> WarpClock::kClockShift == 0) & ((x & 63) != 0);
  const Stamps later = r > mine ? r : mine;
  Stamps next = mine | (other_lane & WarpClock::kLanes);
  next = other_warp ? (later | WarpClock::kWarps) : next;
  next = r <= low ? mine : next;
  store_stamps(readers, next);
  return any_set(bad);
}

KV_INLINE bool write_four(uint32_t* writers, const uint32_t* readers, Stamps mine, uint32_t floor) {
  const Stamps w = load_stamps(writers), r = load_stamps(readers), low = all_stamps(floor);
  if (any_set(unsettled(w, mine, low) | unsettled(r, mine, low))) return true;
  store_stamps(writers, mine);
  return false;
}

KV_INLINE uint32_t next_reader(uint32_t r, uint32_t me, uint32_t floor) {
  if (r <= floor) return me;
  const uint32_t x = r ^ me;
  if (x & (WarpClock::kWarpField | WarpClock::kWarps)) {
    return (r > me ? r : me) | WarpClock::kWarps;
  }
  return x >> WarpClock::kClockShift == 0 && (x & 63) ? me | WarpClock::kLanes : me;
}

KV_INLINE bool read_one(const uint32_t* writer, uint32_t* reader, uint32_t me, uint32_t floor) {
  *reader = next_reader(*reader, me, floor);
  return *writer > floor && *writer != me;
}

KV_INLINE bool write_one(uint32_t* writer, const uint32_t* reader, uint32_t me, uint32_t floor) {
  if ((*writer > floor && *writer != me) || (*reader > floor && *reader != me)) return true;
  *writer = me;
  return false;
}

}  // namespace kv::simt
