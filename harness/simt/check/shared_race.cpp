#include "harness/simt/check/shared_race.h"

#include <algorithm>

namespace kv::simt {
namespace {

uint32_t lowest(const uint32_t (&seen)[32]) { return *std::min_element(seen, seen + 32); }

}  // namespace

void WarpClock::start(uint32_t warp, uint32_t clock) {
  std::fill(seen, seen + 32, clock - 1);
  std::fill(fenced, fenced + 32, clock - 1);
  fence_clock = 0;
  base = clock << kClockShift | warp << 6;
  floor = (clock - 1) << kClockShift | kCodeMask;
}

void WarpClock::join(const uint32_t (&joined)[32], uint32_t clock) {
  const uint32_t self = warp();
  for (uint32_t w = 0; w < 32; ++w) seen[w] = std::max(seen[w], joined[w]);
  seen[self] = clock - 1;
  std::copy(seen, seen + 32, fenced);
  fence_clock = 0;
  base = clock << kClockShift | self << 6;
  floor = lowest(seen) << kClockShift | kCodeMask;
}

void WarpClock::sync_lanes() {
  if (clock() >= kClockMax) return;
  seen[warp()] = clock();
  base += 1u << kClockShift;
  floor = lowest(seen) << kClockShift | kCodeMask;
}

void WarpClock::fence() {
  publish(fenced);
  fence_clock = clock();
  if (clock() < kClockMax) base += 1u << kClockShift;
}

void WarpClock::publish_fenced(uint32_t* joined) {
  for (uint32_t w = 0; w < 32; ++w) joined[w] = std::max(joined[w], fenced[w]);
  seen[warp()] = std::max(seen[warp()], fenced[warp()]);
  floor = lowest(seen) << kClockShift | kCodeMask;
}

void WarpClock::absorb(const uint32_t* joined) {
  for (uint32_t w = 0; w < 32; ++w) {
    if (w != warp()) seen[w] = std::max(seen[w], joined[w]);
  }
  floor = lowest(seen) << kClockShift | kCodeMask;
}

void WarpClock::publish(uint32_t* joined) const {
  for (uint32_t w = 0; w < 32; ++w) joined[w] = std::max(joined[w], seen[w]);
  joined[warp()] = std::max(joined[warp()], clock());
}

bool WarpClock::conflicts(uint32_t stamp, uint32_t me) const {
  if (stamp <= floor) return false;
  if (stamp & kWarps) return true;
  if (stamp >> kClockShift <= seen[stamp >> 6 & 31]) return false;
  return ((stamp ^ me) & kCodeMask & ~kStrong) != 0;
}

}  // namespace kv::simt
