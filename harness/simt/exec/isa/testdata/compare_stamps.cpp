// Whole warps beside lanes one by one, on random stamps. A file of its own: compiled for AVX-512.
#include "harness/simt/exec/isa/place.h"

namespace kv::simt::KV_ISA {
namespace {

constexpr u32 kChunks = 64, kGranules = 4 * kChunks;

struct Stamped {
  SharedChunk chunks[kChunks];
  u32 writers[kGranules], readers[kGranules];
};

struct Draws {
  u64 state;
  u32 below(u32 n) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return u32((state >> 33) % n);
  }
};

/// Clocks 0 .. 7 of a few warps; sometimes several warps or lanes, or a strong access.
u32 any_stamp(Draws& draws) {
  const u32 flags[] = {0, 0, 0, WarpClock::kLanes, WarpClock::kWarps, WarpClock::kStrong};
  return draws.below(8) << WarpClock::kClockShift | flags[draws.below(6)] | draws.below(3) << 6 |
         draws.below(32);
}
/// `quiet`: hardly anything newer than the clocks that every warp has seen.
void draw(Draws& draws, bool quiet, Stamped* s) {
  const auto stamp = [&] {
    return quiet && draws.below(500) ? draws.below(2) << WarpClock::kClockShift : any_stamp(draws);
  };
  const bool split = draws.below(2);
  for (SharedChunk& chunk : s->chunks) {
    chunk = {stamp(), stamp()};
    if (draws.below(quiet ? 500 : 3) == 0 || (quiet && split)) {
      chunk.writer = draws.below(8) << WarpClock::kClockShift | SharedChunk::kSplit;
      chunk.reader = chunk.writer;
    }
  }
  for (u32 g = 0; g < kGranules; ++g) s->writers[g] = stamp(), s->readers[g] = stamp();
}

bool same(const Stamped& a, const Stamped& b) { return __builtin_memcmp(&a, &b, sizeof a) == 0; }

struct Bench {
  LaunchState launch;
  Block block;
  Warp warp;
  Place place;

  explicit Bench(Draws& draws) {
    warp.block = &block, warp.launch = &launch, launch.shared_chunks = true;
    const u32 clock = 2 + draws.below(6), seen = 1 + draws.below(clock - 1);
    warp.clock.base = clock << WarpClock::kClockShift | draws.below(3) << 6;
    warp.clock.floor = seen << WarpClock::kClockShift | WarpClock::kCodeMask;
    warp.clock.seen[warp.clock.warp()] = seen + draws.below(clock - seen);
    block.oldest = (1 + draws.below(seen)) << WarpClock::kClockShift | WarpClock::kCodeMask;
  }
  void look_at(Stamped* s) {
    place.shared_chunks = block.chunks = s->chunks;
    place.writers = block.writers = s->writers;
    place.readers = block.readers = s->readers;
  }
};

template <u32 kBytes, bool kWrite>
bool by_lanes(Bench& b, int lanes, bool apart) {
  const Warp& w = b.warp;
  bool bad = false;
  if (kBytes < 16) open_chunks(w, b.place, ~0u);
  for (int l = 0; l < lanes; ++l) {
    const u32 off = b.place.off[l], me = w.clock.base + (apart ? u32(l) : WarpClock::kLanes);
    bad |= kBytes == 16 ? shared_chunk_race<kWrite>(w, b.place, off, me)
                        : shared_granules_race<kWrite>(b.place, off / 4, 1, me, w.clock.ordered());
  }
  return bad;
}

struct Tally {
  u32 settled = 0, wrong = 0;
};

template <u32 kBytes, bool kWrite, int kLanes, bool kApart>
void compare(Bench& b, const Stamped& stamps, bool in_order, Tally* tally) {
  Stamped fast = stamps, slow = stamps;
  b.look_at(&fast);
  const bool settled =
      kApart ? settle_lanes<kBytes, kWrite>(b.warp, b.place.off, in_order)
             : settle_scattered<false, kLanes, false>(b.warp, b.block.chunks, b.place.off);
  const bool bad_fast = settled ? false : by_lanes<kBytes, kWrite>(b, kLanes, kApart);
  b.look_at(&slow);
  const bool bad_slow = by_lanes<kBytes, kWrite>(b, kLanes, kApart);
  tally->settled += settled;
  tally->wrong += bad_fast != bad_slow || !same(fast, slow);
}

/// One address for the lanes of `mask`.
void compare_together(Bench& b, const Stamped& stamps, u32 mask, Tally* tally) {
  Stamped fast = stamps, slow = stamps;
  b.look_at(&fast);
  const bool bad_fast = together_race<4>(b.warp, b.place, mask);
  b.look_at(&slow);
  open_chunks(b.warp, b.place, mask);
  bool bad_slow = false;
  for (u32 m = mask; m; m &= m - 1) {
    const u32 me = b.warp.clock.base + u32(__builtin_ctz(m));
    bad_slow |=
        shared_granules_race<false>(b.place, b.place.off[0] / 4, 1, me, b.warp.clock.ordered());
  }
  tally->settled += !bad_fast;
  tally->wrong += bad_fast != bad_slow || !same(fast, slow);
}

}  // namespace

/// Pairs of settled and wrong accesses, for each kind; `count` rounds.
void compare_stamps(u64 seed, u32 count, u32 (*out)[2]) {
  Draws draws{seed};
  Tally tally[8];
  for (u32 round = 0; round < count; ++round) {
    Bench b(draws);
    Stamped stamps;
    draw(draws, round % 4 != 0, &stamps);
    for (u32 l = 0; l < 32; ++l) b.place.off[l] = 64 + 4 * l;
    compare<4, false, 32, true>(b, stamps, true, &tally[0]);
    compare<4, true, 32, true>(b, stamps, true, &tally[1]);
    for (u32 l = 0; l < 32; ++l) b.place.off[l] = 256 + 16 * l;
    compare<16, false, 32, true>(b, stamps, true, &tally[2]);
    compare<16, true, 32, true>(b, stamps, true, &tally[3]);
    const u32 turn = 2 * draws.below(32) + 1, fold = draws.below(8) ? 64 : 31;
    for (u32 l = 0; l < 32; ++l) b.place.off[l] = 16 * (l * turn % fold % kChunks);
    compare<16, false, 32, true>(b, stamps, false, &tally[4]);
    compare<16, true, 32, true>(b, stamps, false, &tally[5]);
    compare<16, false, 16, false>(b, stamps, false, &tally[6]);
    for (u32 l = 0; l < 32; ++l) b.place.off[l] = 4 * turn;
    compare_together(b, stamps, draws.below(1u << 31) << draws.below(2) | 1u << draws.below(32),
                     &tally[7]);
  }
  for (int k = 0; k < 8; ++k) out[k][0] = tally[k].settled, out[k][1] = tally[k].wrong;
}

}  // namespace kv::simt::KV_ISA
