// Is one lane's access ordered after those it meets? Strong accesses carry the order on.
#include <algorithm>

#include "harness/simt/check/global_race.h"
#include "harness/simt/exec/access.h"
#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/report.h"

namespace kv::simt {

using ptx::Space;

namespace {

// --- races

std::string shared_other(const Access& a, uint32_t stamp) {
  if (stamp & WarpClock::kWarps) return "several warps";
  const uint32_t warp = stamp >> 6 & 31;
  if (stamp & WarpClock::kLanes) return "several lanes of warp " + std::to_string(warp);
  (void)a;
  return "thread " + std::to_string(warp * 32 + (stamp & 31)) + " of the block";
}

void report_race(const Access& a, const Target& t, const std::string& other, bool other_writes,
                 bool same_value, bool one_warp) {
  const uint32_t kind = same_value ? KV_SIMT_KIND_RACE_SAME_VALUE : KV_SIMT_KIND_RACE;
  std::set<uint64_t>& raced = a.w.launch->cold->raced;
  if (raced.size() < 65536) raced.insert(race_place(a.w, t.space, t.address));
  if (!fresh(a.w, a.i, kind)) return;
  const bool shared = t.space == Space::kShared;
  const std::string where =
      shared ? "shared offset " + std::to_string(t.address)
             : hex(t.address) + ", " + extent_name(*a.w.launch->cold->space, t.address);
  file(a.w, a.i,
       {.kind = kind,
        .lane = a.lane,
        .address = t.address,
        .bytes = a.bytes,
        .space = t.space,
        .message = thread_name(a.w, a.lane) + " " + verb(a) + " " + where + ", which " + other +
                   (other_writes ? " wrote" : " read") + " with nothing to order the two" +
                   (same_value ? " (the same value)" : "") +
                   (one_warp ? "; both are in one warp: __syncwarp() is missing" : "")});
}

/// `value`: what is about to be written, to tell same-value writes apart.
void shared_race(const Access& a, const Target& t, const uint8_t* value) {
  Block& b = *a.w.block;
  const uint32_t shift = a.w.launch->shared_shift;
  const uint32_t me = (a.strong && a.write ? a.w.clock.strong_base() : a.w.clock.base) + a.lane;
  open_chunks(a.w, t.address, a.bytes);
  uint32_t first = uint32_t(t.address >> shift),
           last = uint32_t((t.address + a.bytes - 1) >> shift);
  const auto conflicts = [&](uint32_t stamp) {
    return !(a.strong && (stamp & WarpClock::kStrong)) && a.w.clock.conflicts(stamp, me);
  };
  const uint32_t strong = a.strong ? WarpClock::kStrong : 0;
  for (uint32_t g = first; g <= last; ++g) {
    const bool writer = conflicts(b.writers[g]);
    const bool reader = a.write && conflicts(b.readers[g]);
    if (writer || reader) {
      const uint32_t stamp = writer ? b.writers[g] : b.readers[g];
      const bool same = value && writer && !reader && std::memcmp(t.data, value, a.bytes) == 0;
      const bool one_warp = !(stamp & WarpClock::kWarps) && (stamp >> 6 & 31) == a.w.id;
      if (!(stamp & WarpClock::kWarps) || !program_of(a.w).partial_sync ||
          a.w.clock.certain(stamp)) {
        report_race(a, t, shared_other(a, stamp), writer, same, one_warp);
      }
    }
    if (a.write) b.writers[g] = me | strong;
    if (!a.read) continue;
    // Strong only as long as all its readers are.
    const uint32_t r = b.readers[g];
    const bool all_strong = strong && (r <= a.w.clock.floor || (r & WarpClock::kStrong));
    b.readers[g] = (next_reader(r, me, a.w.clock.ordered()) & ~WarpClock::kStrong) |
                   (all_strong ? WarpClock::kStrong : 0);
  }
}

/// Is an access stamped `stamp` ordered before this block, as far as is known? Of several blocks
/// that is the one that the stamp names, and of that one only if it is another.
bool ordered(const LaunchCold& cold, uint32_t me, uint32_t stamp) {
  const auto found = cold.sync.acquired.find(me & BlockStamp::kBlock);
  if (found == cold.sync.acquired.end()) return false;
  const BlockClocks& acquired = found->second;
  const uint32_t block = stamp & BlockStamp::kBlock, clock = stamp >> BlockStamp::kClockShift;
  if ((stamp & BlockStamp::kSeveral) && block == (me & BlockStamp::kBlock)) return true;
  const auto other = acquired.find(block);
  return other != acquired.end() && clock <= other->second;
}

/// Atomics and their like of the block's scope are plain accesses for other blocks and streams.
bool strong_in_grid(const Access& a) { return a.strong && !(a.i->flags & access_flags::kInBlock); }

/// With work of another stream that ran before this launch.
void stream_race(const Access& a, const Target& t, uint32_t writer, uint32_t reader) {
  const LaunchCold& cold = *a.w.launch->cold;
  const auto unordered = [&](uint32_t stamp) -> const TrackedWork* {
    if (strong_in_grid(a) && (stamp & BlockStamp::kStrong)) return nullptr;
    return work_of_stamp(cold.unordered, stamp);
  };
  if (const TrackedWork* work = unordered(writer)) {
    report_race(a, t, work->name + " in another stream", true, false, false);
  } else if (const TrackedWork* reading = a.write ? unordered(reader) : nullptr) {
    report_race(a, t, reading->name + " in another stream", false, false, false);
  }
}

/// Those of the bytes from `base` on get stamps for each granule.
void split_chunks(const LaunchState& launch, uint64_t base, uint32_t bytes, uint32_t me) {
  if (!launch.whole_chunks) return;
  auto* const chunks = reinterpret_cast<ChunkStamps*>(layout::kChunkBase);
  const uint32_t to_granule = ChunkStamps::kShift - launch.global_shift;
  for (uint64_t c = base >> ChunkStamps::kShift; c <= (base + bytes - 1) >> ChunkStamps::kShift;
       ++c) {
    if (is_split(chunks[c], launch.global_floor)) continue;
    split_chunk(chunks + c, reinterpret_cast<uint32_t*>(layout::kWriterBase) + (c << to_granule),
                reinterpret_cast<uint32_t*>(layout::kReaderBase) + (c << to_granule),
                1u << to_granule, me, launch.global_floor);
  }
}

/// Of an access: a strong write with a fence before it is part of what it publishes.
uint32_t global_stamp(const Access& a) {
  const Block& b = *a.w.block;
  if (!a.write || b.fenced_clock == 0 || !strong_in_grid(a)) return b.global_stamp;
  return BlockStamp::make(b.fenced_clock, b.global_stamp & BlockStamp::kBlock);
}

void global_race(const Access& a, const Target& t, const uint8_t* value) {
  const LaunchCold& cold = *a.w.launch->cold;
  const uint32_t shift = a.w.launch->global_shift, me = global_stamp(a);
  const uint32_t floor = a.w.launch->global_floor;
  auto* const writers = reinterpret_cast<uint32_t*>(layout::kWriterBase);
  auto* const readers = reinterpret_cast<uint32_t*>(layout::kReaderBase);
  const uint64_t base = AddressSpace::bit(t.address);
  const bool is_strong = strong_in_grid(a);
  split_chunks(*a.w.launch, base, a.bytes, me);
  for (uint64_t g = base >> shift; g <= (base + a.bytes - 1) >> shift; ++g) {
    const auto unordered = [&](uint32_t stamp) {
      if (is_strong && (stamp & BlockStamp::kStrong)) return false;
      return foreign(stamp, me, floor) && !ordered(cold, me, stamp);
    };
    const uint32_t strong = is_strong ? BlockStamp::kStrong : 0;
    if (a.w.launch->check_stream_race) stream_race(a, t, writers[g], readers[g]);
    const bool writer = unordered(writers[g]);
    const bool reader = a.write && unordered(readers[g]);
    if (writer || reader) {
      const uint32_t stamp = writer ? writers[g] : readers[g];
      const std::string other =
          stamp & BlockStamp::kSeveral
              ? "several blocks"
              : "block " + std::to_string(stamp & BlockStamp::kBlock) + " of the grid";
      const bool same = value && writer && !reader && std::memcmp(t.data, value, a.bytes) == 0;
      report_race(a, t, other, writer, same, false);
    }
    if (a.write) writers[g] = me | strong;
    if (!a.read) continue;
    const bool all_strong = strong && (readers[g] <= floor || (readers[g] & BlockStamp::kStrong));
    (void)global_read_one(&writers[g], &readers[g], me, floor);
    readers[g] = (readers[g] & ~BlockStamp::kStrong) | (all_strong ? BlockStamp::kStrong : 0);
  }
}

}  // namespace

void check_race(const Access& a, const Target& t, const uint8_t* value) {
  if (t.space == Space::kShared && a.w.launch->check_shared_race) shared_race(a, t, value);
  if (t.space == Space::kGlobal && a.w.launch->check_global_race) global_race(a, t, value);
}

void open_chunks(const Warp& w, uint64_t offset, uint32_t bytes) {
  if (!w.launch->shared_chunks) return;
  const Block& b = *w.block;
  const uint32_t to_granule = SharedChunk::kShift - w.launch->shared_shift;
  for (uint64_t c = offset >> SharedChunk::kShift; c <= (offset + bytes - 1) >> SharedChunk::kShift;
       ++c) {
    const uint64_t first = c << to_granule;
    open_chunk(b.chunks + c, {b.writers + first, b.readers + first, 1u << to_granule}, w.clock.base,
               b.oldest);
  }
}

namespace {

bool synchronises(const Access& a, const Target& t) {
  return a.strong && (a.w.launch->checks & KV_SIMT_CHECK_RACE) &&
         (t.space == Space::kShared || t.space == Space::kGlobal);
}

SyncVariable& variable_of(const Access& a, const Target& t) {
  const bool global = t.space == Space::kGlobal;
  return a.w.launch->cold->sync.variables[global ? t.address : a.w.block->index << 20 | t.address];
}

/// Does it order blocks, too?
bool reaches_blocks(const Access& a, const Target& t) {
  return t.space == Space::kGlobal && strong_in_grid(a);
}

}  // namespace

/// A strong read takes over what writers of the address have published.
void acquire(const Access& a, const Target& t) {
  if (!synchronises(a, t)) return;
  const SyncVariable& variable = variable_of(a, t);
  const Block& b = *a.w.block;
  if (const auto warps = variable.warps.find(b.index); warps != variable.warps.end()) {
    a.w.clock.absorb(warps->second.data());
  }
  if (reaches_blocks(a, t) && !variable.blocks.empty()) {
    join(a.w.launch->cold->sync.acquired[b.global_stamp & BlockStamp::kBlock], variable.blocks);
  }
}

const Ins* fence_in_block(Warp& w, const Ins* i) {
  w.clock.fence();
  KV_NEXT(w, i + 1);
}

namespace {

/// What the block does from now on is not published with what it has done. A clock of its own,
/// within reason.
void move_on(Warp& w) {
  Block& b = *w.block;
  const uint32_t clock = b.global_stamp >> BlockStamp::kClockShift;
  const uint32_t begin = w.launch->global_floor >> BlockStamp::kClockShift;
  if (clock - begin >= BlockStamp::kPublishMax) return;
  b.global_stamp += 1u << BlockStamp::kClockShift;
  w.launch->cold->clock_max = std::max(w.launch->cold->clock_max, clock + 1);
}

}  // namespace

const Ins* fence(Warp& w, const Ins* i) {
  w.clock.fence();
  w.block->fenced_clock = w.block->global_stamp >> BlockStamp::kClockShift;
  move_on(w);
  KV_NEXT(w, i + 1);
}

/// A strong write publishes what its warp and block had done and seen at their last fences, and a
/// release all that they have: an atomic or volatile access alone orders nothing.
void release(const Access& a, const Target& t) {
  if (!synchronises(a, t)) return;
  LaunchCold& cold = *a.w.launch->cold;
  Block& b = *a.w.block;
  SyncVariable& variable = variable_of(a, t);
  if (a.i->flags & access_flags::kRelease) a.w.clock.fence();
  a.w.clock.publish_fenced(variable.warps[b.index].data());
  if (!reaches_blocks(a, t)) return;
  const uint32_t me = b.global_stamp & BlockStamp::kBlock;
  const uint32_t clock = b.global_stamp >> BlockStamp::kClockShift;
  const uint32_t published = a.i->flags & access_flags::kRelease ? clock : b.fenced_clock;
  if (published == 0) return;
  if (const auto mine = cold.sync.acquired.find(me); mine != cold.sync.acquired.end()) {
    join(variable.blocks, mine->second);
  }
  uint32_t& before = variable.blocks[me];
  before = std::max(before, published);
  if (published == clock) move_on(a.w);
}

}  // namespace kv::simt
