#include "harness/simt/exec/block.h"

#include <algorithm>
#include <cstring>

#include "harness/simt/exec/branching.h"
#include "harness/simt/exec/report.h"
#include "harness/simt/exec/taint.h"

namespace kv::simt {
namespace {

constexpr uint64_t kAlign = 256;
uint64_t round_up(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

uint32_t special_value(const Warp& w, Special what, uint32_t lane) {
  const LaunchCold& cold = *w.launch->cold;
  const uint32_t t = w.id * 32 + lane;
  switch (what) {
    case Special::kTidX:
      return t % cold.block.x;
    case Special::kTidY:
      return t / cold.block.x % cold.block.y;
    case Special::kTidZ:
      return t / cold.block.x / cold.block.y;
    case Special::kNtidX:
      return cold.block.x;
    case Special::kNtidY:
      return cold.block.y;
    case Special::kNtidZ:
      return cold.block.z;
    case Special::kCtaidX:
      return w.block->ctaid[0];
    case Special::kCtaidY:
      return w.block->ctaid[1];
    case Special::kCtaidZ:
      return w.block->ctaid[2];
    case Special::kNctaidX:
      return cold.grid.x;
    case Special::kNctaidY:
      return cold.grid.y;
    case Special::kNctaidZ:
      return cold.grid.z;
    case Special::kLaneId:
      return lane;
    case Special::kWarpId:
      return w.id;
    case Special::kNwarpId:
      return w.block->warps;
    case Special::kNsmId:
      return 108;
    case Special::kGridId:
      return uint32_t(cold.number);
    case Special::kLanemaskEq:
      return 1u << lane;
    case Special::kLanemaskLt:
      return (1u << lane) - 1;
    case Special::kLanemaskLe:
      return (2u << lane) - 1;
    case Special::kLanemaskGt:
      return ~((2u << lane) - 1);
    case Special::kLanemaskGe:
      return ~((1u << lane) - 1);
    case Special::kDynamicSharedBytes:
      return cold.dynamic_shared_bytes;
    case Special::kTotalSharedBytes:
      return w.block->shared_bytes;
    case Special::kOne:
      return 1;
    case Special::kEnvReg1:
      return uint32_t(cold.workspace >> 32);
    case Special::kEnvReg2:
      return uint32_t(cold.workspace);
    default:
      return 0;  // %smid, clocks: a kernel that looks at them must not change its results
  }
}

bool changes_with_lane(Special what) {
  switch (what) {
    case Special::kTidX:
    case Special::kTidY:
    case Special::kTidZ:
    case Special::kLaneId:
    case Special::kLanemaskEq:
    case Special::kLanemaskLt:
    case Special::kLanemaskLe:
    case Special::kLanemaskGt:
    case Special::kLanemaskGe:
      return true;
    default:
      return false;
  }
}

struct Lanes {
  uint16_t slot = 0;
  bool wide = false;
};

void fill(Warp& w, Lanes lanes, uint64_t value) {
  if (lanes.wide) {
    std::fill_n(slot<uint64_t>(w, lanes.slot), 32, value);
  } else {
    std::fill_n(slot<uint32_t>(w, lanes.slot), 32, uint32_t(value));
  }
}

/// Nothing is unordered that a warp that does not exist has done: else the only warp of a block
/// would look at its own stamps one by one after each bar.warp.sync.
void start_clock(Warp& w, uint32_t clock) {
  w.clock.start(w.id, clock);
  std::fill(w.clock.seen + w.block->warps, w.clock.seen + 32, WarpClock::kClockMax);
}

void write_special(Warp& w, const SpecialSlot& s) {
  if (!changes_with_lane(s.what)) {
    return fill(w, {s.slot, s.wide}, special_value(w, s.what, 0));
  }
  for (uint32_t l = 0; l < 32; ++l) {
    const uint32_t value = special_value(w, s.what, l);
    if (s.wide) {
      slot<uint64_t>(w, s.slot)[l] = value;
    } else {
      slot<uint32_t>(w, s.slot)[l] = value;
    }
  }
}

}  // namespace

void BlockPlace::prepare(LaunchState& launch, uint32_t shared_bytes) {
  LaunchCold& cold = *launch.cold;
  const Program& p = *cold.program;
  const uint32_t threads = cold.block.x * cold.block.y * cold.block.z;
  const uint32_t warps = (threads + 31) / 32;
  block_.launch = &launch;
  block_.threads = threads;
  block_.warps = warps;
  block_.shared_bytes = shared_bytes;
  cold_.all = warps == 32 ? ~0u : (1u << warps) - 1;
  if (cold_.prepared_for == cold.unique) return;
  cold_.prepared_for = cold.unique;

  const uint64_t file = round_up(uint64_t{p.slots} * 128);
  const uint32_t local_words = (p.local_bytes + p.frame_bytes + 3) / 4;
  const uint64_t local = round_up(uint64_t{local_words} * 128), local_bits = round_up(local / 8);
  const uint64_t shared = round_up(shared_bytes + 64), shared_bits = round_up(shared / 8 + 64);
  const uint64_t total = (file + local + local_bits) * warps + shared + shared_bits + kAlign;
  if (total > cold_.memory_bytes) {
    cold_.memory = std::make_unique_for_overwrite<uint8_t[]>(total);
    cold_.memory_bytes = total;
  }
  uint8_t* at =
      reinterpret_cast<uint8_t*>(round_up(reinterpret_cast<uint64_t>(cold_.memory.get())));
  const uint64_t granules = (shared >> p.shared_granule_shift) + 16;
  if (cold_.writers.size() < granules || cold_.clock > WarpClock::kClockMax / 2) {
    cold_.writers.assign(std::max<uint64_t>(granules, cold_.writers.size()), 0);
    cold_.readers.assign(cold_.writers.size(), 0);
    cold_.chunks.assign(cold_.chunks.size(), {});
    cold_.clock = 1;
  }
  cold_.chunks.resize(std::max<uint64_t>(cold_.chunks.size(), shared >> SharedChunk::kShift));
  block_.writers = cold_.writers.data();
  block_.readers = cold_.readers.data();
  block_.chunks = cold_.chunks.data();
  block_.shared = at;
  block_.shared_bits = at + shared;
  at += shared + shared_bits;
  cold_.warps.resize(warps);
  if (cold_.warp_cold.size() < warps) cold_.warp_cold.resize(warps);
  cold_.state.resize(warps);
  cold_.predicates.assign(uint64_t{p.predicates} * warps, 0);
  for (uint32_t k = 0; k < warps; ++k) {
    Warp& w = cold_.warps[k];
    w = {};
    w.id = k;
    w.block = &block_;
    w.launch = &launch;
    w.cold = &cold_.warp_cold[k];
    w.cold->taint.forget();
    w.rf = at;
    w.local = reinterpret_cast<uint32_t*>(at + file);
    w.local_bits = at + file + local;
    w.local_words = local_words;
    w.predicates = cold_.predicates.data() + uint64_t{p.predicates} * k;
    w.clean_code = w.code = p.code.data();
    at += file + local + local_bits;
    fill_specials(w);
    if (p.entry != 0) run_prologue(w);
  }
}

void BlockPlace::fill_specials(Warp& w) {
  const Program& p = program_of(w);
  for (const ConstantSlot& c : p.constants) fill(w, {c.slot, c.wide}, c.value);
  for (const SpecialSlot& s : p.specials) {
    if (!changes_with_block(s.what)) write_special(w, s);
  }
}

void BlockPlace::start(uint64_t index) {
  LaunchState& launch = *block_.launch;
  const LaunchCold& cold = *launch.cold;
  const Program& p = *cold.program;
  block_.index = index;
  block_.ctaid[0] = uint32_t(index % cold.grid.x);
  block_.ctaid[1] = uint32_t(index / cold.grid.x % cold.grid.y);
  block_.ctaid[2] = uint32_t(index / cold.grid.x / cold.grid.y);
  block_.global_stamp =
      BlockStamp::make((launch.global_floor >> BlockStamp::kClockShift) + 1, index);
  block_.fenced_clock = 0;
  std::memset(block_.shared, layout::kPoison, block_.shared_bytes);
  std::memset(block_.shared_bits, 0, block_.shared_bytes / 8 + 1);
  for (Barrier& b : cold_.barriers) {
    if (b.used) b = {};
  }
  cold_.done = 0;
  if (cold_.clock > WarpClock::kClockMax / 2) {
    forget_stamps();
    cold_.clock = 1;
  }
  for (uint32_t k = 0; k < block_.warps; ++k) {
    Warp& w = cold_.warps[k];
    const uint32_t lanes = std::min(32u, block_.threads - k * 32);
    w.missing = lanes == 32 ? 0 : ~((1u << lanes) - 1);
    w.dead = w.missing;
    w.active = ~w.missing;
    set_exec(w, w.active);
    w.pc = p.entry;
    w.fragments = 0;
    w.forced = w.rotating = false;
    w.spins = 0;
    w.pending_copies = w.copy_group = 0;
    start_clock(w, cold_.clock);
    block_.oldest = w.clock.floor;
    cold_.state[k] = WarpState::kReady;
    for (const SpecialSlot& s : p.specials) {
      if (changes_with_block(s.what)) write_special(w, s);
    }
    if (w.local_words) {
      std::memset(w.local, layout::kPoison, uint64_t{w.local_words} * 128);
      std::memset(w.local_bits, 0, uint64_t{w.local_words} * 16);
    }
    clear_taint(w);
    for (size_t r = 0; r < p.watched.size(); ++r) {
      const auto [place, cls] = p.watched[r];
      w.predicates[p.first_mask + r] = launch.check_undefined ? 0 : ~0u;
      if (cls == 'p') {
        w.predicates[place] = 0;
      } else {
        std::memset(slot<uint8_t>(w, place), layout::kPoison, cls == '2' ? 128 : 256);
      }
    }
  }
  ++cold_.clock;
}

bool BlockPlace::any_ready() const {
  for (uint32_t k = 0; k < block_.warps; ++k) {
    if (cold_.state[k] == WarpState::kReady) return true;
  }
  return false;
}

void BlockPlace::stopped(Warp& w) {
  // Whatever ends the launch, the next block is to find its stamps old.
  cold_.clock = std::max(cold_.clock, w.clock.clock() + 1);
  if (w.stop == Stop::kDone) {
    cold_.state[w.id] = WarpState::kDone;
    cold_.done |= 1u << w.id;
    for (Barrier& b : cold_.barriers) {
      if (b.arrived && b.expected == 0) check_whole(b);
    }
  } else if (w.stop == Stop::kBarrier) {
    arrive(w);
  } else if (w.stop == Stop::kSlice) {
    rotate_fragments(w);
  }
}

void BlockPlace::arrive(Warp& w) {
  Barrier& b = cold_.barriers[w.barrier_id];
  const bool checks = block_.launch->checks & KV_SIMT_CHECK_BARRIER;
  const Ins* i = at(w, w.pc) - 1;
  const auto complain = [&](const std::string& what) {
    if (!checks || !fresh(w, i, KV_SIMT_KIND_BARRIER)) return;
    const auto lane = uint32_t(__builtin_ctz(w.active));
    file(w, i,
         {.kind = KV_SIMT_KIND_BARRIER,
          .lane = lane,
          .message =
              thread_name(w, lane) + ": barrier " + std::to_string(w.barrier_id) + ": " + what});
  };
  if (w.barrier_count % 32) {
    complain("a thread count of " + std::to_string(w.barrier_count) +
             ", which is not a multiple of 32");
  }
  const uint32_t count = (w.barrier_count + 31) / 32 * 32;
  if (b.used && (b.arrived | b.signalled) && b.expected != count) {
    complain("warps expect " + std::to_string(b.expected) + " and " + std::to_string(count) +
             " threads");
  }
  if (w.dead & ~w.missing) {
    complain(std::to_string(__builtin_popcount(w.dead & ~w.missing)) +
             " threads of the warp have exited before it");
  }
  b.used = true;
  b.expected = count;
  b.threads += 32;
  w.clock.publish(b.joined);
  if (w.barrier_flags & barrier_flags::kReduce) {
    b.reduce_count += uint32_t(__builtin_popcount(w.barrier_votes));
    b.reduce_lanes += uint32_t(__builtin_popcount(w.barrier_lanes));
  }
  if (w.barrier_flags & barrier_flags::kArrive) {
    b.signalled |= 1u << w.id;
    w.clock.sync_lanes();
  } else {
    b.arrived |= 1u << w.id;
    cold_.state[w.id] = WarpState::kWaiting;
  }
  if (b.expected == 0) {
    check_whole(b);
  } else if (b.threads >= b.expected) {
    // Whoever only signalled has gone on: what it did since is not ordered.
    complete(b, b.expected >= block_.warps * 32 && b.signalled == 0);
  }
}

void BlockPlace::check_whole(Barrier& b) {
  if ((b.arrived | b.signalled | cold_.done) != cold_.all) return;
  const uint32_t exited = cold_.done & ~b.signalled;
  if (exited && (block_.launch->checks & KV_SIMT_CHECK_BARRIER)) {
    Warp& w = cold_.warps[size_t(__builtin_ctz(b.arrived))];
    const Ins* i = at(w, w.pc) - 1;
    const auto lane = uint32_t(__builtin_ctz(w.active));
    if (fresh(w, i, KV_SIMT_KIND_BARRIER)) {
      file(w, i,
           {.kind = KV_SIMT_KIND_BARRIER,
            .lane = lane,
            .message = thread_name(w, lane) + ": a barrier of the whole block, but " +
                       std::to_string(__builtin_popcount(exited)) + " of " +
                       std::to_string(block_.warps) + " warps have exited"});
    }
  }
  complete(b, true);
}

void BlockPlace::forget_stamps() {
  std::fill(cold_.writers.begin(), cold_.writers.end(), 0);
  std::fill(cold_.readers.begin(), cold_.readers.end(), 0);
  std::fill(cold_.chunks.begin(), cold_.chunks.end(), SharedChunk());
}

/// A barrier of the whole block orders everything: stamps may be forgotten and clocks start again.
uint32_t BlockPlace::restart_clocks() {
  forget_stamps();
  for (Warp& w : cold_.warps) start_clock(w, 1);
  cold_.clock = 2;
  return 2;
}

void BlockPlace::complete(Barrier& b, bool whole) {
  uint32_t clock = 0;
  for (uint32_t k = 0; k < block_.warps; ++k) {
    if ((b.arrived >> k & 1) || whole) clock = std::max(clock, cold_.warps[k].clock.clock());
  }
  ++clock;
  if (whole && clock >= WarpClock::kClockMax - 8192) clock = restart_clocks();
  // Warps that do not exist or have exited do nothing more: everything of theirs is ordered.
  for (uint32_t k = 0; k < 32; ++k) {
    if (whole || k >= block_.warps || (cold_.done >> k & 1)) b.joined[k] = clock - 1;
  }
  for (uint32_t k = 0; k < block_.warps; ++k) {
    if (!(b.arrived >> k & 1)) continue;
    Warp& w = cold_.warps[k];
    w.clock.join(b.joined, clock);
    cold_.state[k] = WarpState::kReady;
    if (!(w.barrier_flags & barrier_flags::kReduce)) continue;
    const uint32_t value = w.barrier_mode == 0   ? b.reduce_count
                           : w.barrier_mode == 1 ? b.reduce_count == b.reduce_lanes
                                                 : b.reduce_count != 0;
    for (uint32_t l = 0; l < 32; ++l) {
      if (w.barrier_lanes >> l & 1) slot<uint32_t>(w, w.barrier_result)[l] = value;
    }
  }
  block_.oldest = ~0u;
  for (uint32_t k = 0; k < block_.warps; ++k) {
    if (cold_.done >> k & 1) continue;
    block_.oldest = std::min(block_.oldest, cold_.warps[k].clock.floor);
  }
  cold_.clock = std::max(cold_.clock, clock + 1);
  ++block_.launch->counters->barriers;
  b = {};
  b.used = true;
}

}  // namespace kv::simt
