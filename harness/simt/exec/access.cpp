// Memory lane by lane: the exact path behind the fast ones of isa/memory.cpp. Lanes go in ascending
// order. Faults (bounds, freed, misaligned, wrong space) stop the kernel; everything else reports
// and goes on.
#include "harness/simt/exec/access.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "harness/simt/check/global_race.h"
#include "harness/simt/exec/atomic.h"
#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/report.h"
#include "harness/simt/exec/taint.h"
#include "harness/simt/memory/bits.h"

namespace kv::simt {
namespace {

using ptx::Space;

const char* verb(const Access& a) {
  return a.read && a.write ? "updates" : a.write ? "writes" : "reads";
}

std::optional<Target> fault(const Access& a, uint32_t kind, Space space, uint64_t address,
                            const std::string& why) {
  a.w.stop = Stop::kFault;
  if (fresh(a.w, a.i, kind)) {
    file(a.w, a.i,
         {.kind = kind,
          .lane = a.lane,
          .address = address,
          .bytes = a.bytes,
          .space = space,
          .message = thread_name(a.w, a.lane) + " " + verb(a) + " " + std::to_string(a.bytes) +
                     " bytes at " + why});
  }
  return std::nullopt;
}

/// Bytes of the access that must be there: a load may be wider than what is used of it.
void used_range(const Access& a, uint32_t* first, uint32_t* count) {
  const uint32_t mask = a.bytes >= 32 ? a.used : a.used & ((1u << a.bytes) - 1);
  *first = mask ? uint32_t(__builtin_ctz(mask)) : 0;
  *count = mask ? 32 - uint32_t(__builtin_clz(mask)) - *first : a.bytes;
}

void check_rights(const Access& a, const Target& t) {
  if (!(t.extent->flags & (Extent::kNoRead | Extent::kNoWrite | Extent::kConstant))) return;
  if (!(a.w.launch->checks & KV_SIMT_CHECK_MEMORY)) return;
  const uint32_t rights = a.w.launch->cold->space->access(*t.extent, t.address, a.bytes);
  const uint32_t wanted = (a.read ? KV_SIMT_ACCESS_READ : 0) | (a.write ? 2u : 0);
  if ((rights & wanted) == wanted || !fresh(a.w, a.i, KV_SIMT_KIND_ACCESS_RIGHTS)) return;
  file(a.w, a.i,
       {.kind = KV_SIMT_KIND_ACCESS_RIGHTS,
        .lane = a.lane,
        .address = t.address,
        .bytes = a.bytes,
        .space = Space::kGlobal,
        .message = thread_name(a.w, a.lane) + " " + verb(a) + " " + std::to_string(a.bytes) +
                   " bytes at " + hex(t.address) + ", " +
                   extent_name(*a.w.launch->cold->space, t.address) +
                   (rights == 0 ? ", declared off limits" : ", declared read-only")});
}

std::optional<Target> global_target(const Access& a, uint64_t address) {
  AddressSpace& space = *a.w.launch->cold->space;
  uint32_t first = 0, count = 0;
  used_range(a, &first, &count);
  Extent* e = space.find(address + first);
  if (!e || !e->holds(address + first, count)) {
    const std::string near = address < 4096 ? "the null page" : extent_name(space, address);
    return fault(a, KV_SIMT_KIND_OUT_OF_BOUNDS, Space::kGlobal, address,
                 hex(address) + ", outside every allocation: " + near);
  }
  if (!e->live()) {
    return fault(a, KV_SIMT_KIND_USE_AFTER_FREE, Space::kGlobal, address,
                 hex(address) + ", " + extent_name(space, address));
  }
  if (!space.touch(*e, address + first, count)) {
    return fault(
        a, KV_SIMT_KIND_API, Space::kGlobal, address,
        hex(address) + ": the limit of real device memory (config.memory_bytes) is reached");
  }
  Target t{Space::kGlobal, address, reinterpret_cast<uint8_t*>(address), e};
  check_rights(a, t);
  if (a.write && (e->flags & Extent::kConstant)) {
    return fault(a, KV_SIMT_KIND_ACCESS_RIGHTS, Space::kConst, address, "a constant variable");
  }
  return t;
}

}  // namespace

std::optional<Target> resolve(const Access& a, uint64_t address) {
  Space space = a.space;
  if (space == Space::kConst) space = Space::kGlobal;
  if (space == Space::kGeneric) {
    const auto in = [&](uint64_t window) { return address - window < layout::kWindowBytes; };
    space = Space::kGlobal;
    if (in(layout::kSharedWindow)) space = Space::kShared, address -= layout::kSharedWindow;
    if (in(layout::kLocalWindow)) space = Space::kLocal, address -= layout::kLocalWindow;
    if (in(layout::kParamWindow)) space = Space::kParam, address -= layout::kParamWindow;
  } else if (space != Space::kGlobal &&
             address - layout::kSharedWindow < 3 * layout::kWindowBytes * 256) {
    return fault(a, KV_SIMT_KIND_OUT_OF_BOUNDS, space, address,
                 hex(address) + ": a generic address where the instruction wants an offset");
  }
  if (address & (a.bytes - 1)) {
    return fault(a, KV_SIMT_KIND_MISALIGNED, space, address,
                 hex(address) + ", which is not a multiple of " + std::to_string(a.bytes));
  }
  if (space == Space::kGlobal) return global_target(a, address);
  if (space == Space::kParam && address >= layout::kParamFrame) {
    space = Space::kLocal;
    address = address - layout::kParamFrame + program_of(a.w).local_bytes;
  }
  const uint64_t limit = space == Space::kShared  ? a.w.block->shared_bytes
                         : space == Space::kLocal ? uint64_t{a.w.local_words} * 4
                                                  : a.w.launch->parameter_bytes;
  const char* const name = space == Space::kShared  ? "shared"
                           : space == Space::kLocal ? "local"
                                                    : "parameter";
  if (address > limit || limit - address < a.bytes) {
    return fault(a, KV_SIMT_KIND_OUT_OF_BOUNDS, space, address,
                 std::string(name) + " offset " + std::to_string(int64_t(address)) +
                     ", outside its " + std::to_string(limit) + " bytes");
  }
  if (space == Space::kParam && a.write) {
    return fault(a, KV_SIMT_KIND_ACCESS_RIGHTS, space, address, "a kernel parameter");
  }
  Target t{space, address, nullptr, nullptr};
  if (space == Space::kShared) t.data = a.w.block->shared + address;
  if (space == Space::kParam) t.data = const_cast<uint8_t*>(a.w.launch->parameters) + address;
  return t;
}

namespace {

// --- bytes and their definedness

template <class F>
void for_local_words(const Access& a, const Target& t, F f) {
  for (uint32_t done = 0; done < a.bytes;) {
    const uint64_t at = t.address + done;
    const auto within = uint32_t(at & 3);
    const uint32_t part = std::min(4 - within, a.bytes - done);
    const uint64_t word = at / 4 * 32 + a.lane;
    f(done, reinterpret_cast<uint8_t*>(a.w.local + word) + within, word * 4 + within, part);
    done += part;
  }
}

}  // namespace

void read_bytes(const Access& a, const Target& t, uint8_t* out) {
  if (t.space == Space::kLocal) {
    return for_local_words(a, t, [&](uint32_t at, uint8_t* data, uint64_t, uint32_t count) {
      std::memcpy(out + at, data, count);
    });
  }
  if (t.extent && !t.extent->holds(t.address, a.bytes)) {  // partly unused, see used_range
    for (uint32_t k = 0; k < a.bytes; ++k) {
      out[k] = t.extent->holds(t.address + k, 1) ? t.data[k] : layout::kPoison;
    }
    return;
  }
  std::memcpy(out, t.data, a.bytes);
}

void write_bytes(const Access& a, const Target& t, const uint8_t* from) {
  if (t.space == Space::kLocal) {
    return for_local_words(a, t, [&](uint32_t at, uint8_t* data, uint64_t, uint32_t count) {
      std::memcpy(data, from + at, count);
    });
  }
  std::memcpy(t.data, from, a.bytes);
}

/// Undefined bytes of the access, one bit each.
uint32_t undefined_bytes(const Access& a, const Target& t) {
  uint32_t defined = ~0u;
  if (t.space == Space::kLocal) {
    defined = 0;
    for_local_words(a, t, [&](uint32_t at, uint8_t*, uint64_t bit, uint32_t count) {
      defined |= uint32_t(bits::get(a.w.local_bits, bit, count)) << at;
    });
  } else if (t.space == Space::kShared) {
    defined = uint32_t(bits::get(a.w.block->shared_bits, t.address, a.bytes));
  } else if (t.space == Space::kGlobal && !(t.extent->flags & Extent::kDefined)) {
    defined = uint32_t(bits::get(AddressSpace::bits(), AddressSpace::bit(t.address), a.bytes));
  }
  return ~defined & low_mask(a.bytes) & a.used;
}

void set_undefined_bytes(const Access& a, const Target& t, uint32_t undefined) {
  if (t.space == Space::kLocal) {
    for_local_words(a, t, [&](uint32_t at, uint8_t*, uint64_t bit, uint32_t count) {
      bits::put(a.w.local_bits, bit, count, ~(undefined >> at));
    });
  } else if (t.space == Space::kShared) {
    bits::put(a.w.block->shared_bits, t.address, a.bytes, ~uint64_t{undefined});
  } else if (t.space == Space::kGlobal) {
    if (undefined) t.extent->flags &= ~uint32_t{Extent::kDefined};
    bits::put(AddressSpace::bits(), AddressSpace::bit(t.address), a.bytes, ~uint64_t{undefined});
  }
}

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
  const uint32_t shift = a.w.launch->shared_shift, me = a.w.clock.base + a.lane;
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
      // Several readers cannot be told apart: with partial barriers they may all be ordered.
      if (!(stamp & WarpClock::kWarps) || !program_of(a.w).partial_sync) {
        report_race(a, t, shared_other(a, stamp), writer, same, one_warp);
      }
    }
    if (a.write) b.writers[g] = me | strong;
    if (!a.read) continue;
    // Strong only as long as all its readers are.
    const uint32_t r = b.readers[g];
    const bool all_strong = strong && (r <= a.w.clock.floor || (r & WarpClock::kStrong));
    b.readers[g] = (next_reader(r, me, a.w.clock.floor) & ~WarpClock::kStrong) |
                   (all_strong ? WarpClock::kStrong : 0);
  }
}

/// Is an access stamped `stamp` ordered before this block?
bool ordered(const LaunchCold& cold, uint32_t me, uint32_t stamp) {
  const auto found = cold.sync.acquired.find(me & BlockStamp::kBlock);
  if (found == cold.sync.acquired.end()) return false;
  const BlockClocks& acquired = found->second;
  const uint32_t block = stamp & BlockStamp::kBlock, clock = stamp >> BlockStamp::kClockShift;
  if (block != BlockStamp::kBlock) {
    const auto other = acquired.find(block);
    return other != acquired.end() && clock <= other->second;
  }
  // Several blocks: after all of them only if after every block that has started.
  if (acquired.size() + 1 < cold.started + (acquired.count(me & BlockStamp::kBlock) ? 1 : 0)) {
    return false;
  }
  return std::all_of(acquired.begin(), acquired.end(), [&](const auto& other) {
    return other.first == (me & BlockStamp::kBlock) || clock <= other.second;
  });
}

void global_race(const Access& a, const Target& t, const uint8_t* value) {
  const LaunchCold& cold = *a.w.launch->cold;
  const uint32_t shift = a.w.launch->global_shift, me = a.w.block->global_stamp;
  const uint32_t floor = a.w.launch->global_floor;
  auto* const writers = reinterpret_cast<uint32_t*>(layout::kWriterBase);
  auto* const readers = reinterpret_cast<uint32_t*>(layout::kReaderBase);
  const uint64_t base = AddressSpace::bit(t.address);
  for (uint64_t g = base >> shift; g <= (base + a.bytes - 1) >> shift; ++g) {
    const auto unordered = [&](uint32_t stamp) {
      if (a.strong && (stamp & BlockStamp::kStrong)) return false;
      return foreign(stamp, me, floor) && !ordered(cold, me, stamp);
    };
    const uint32_t strong = a.strong ? BlockStamp::kStrong : 0;
    const bool writer = unordered(writers[g]);
    const bool reader = a.write && unordered(readers[g]);
    if (writer || reader) {
      const uint32_t block = (writer ? writers[g] : readers[g]) & BlockStamp::kBlock;
      const std::string other = block == BlockStamp::kBlock
                                    ? "several blocks"
                                    : "block " + std::to_string(block) + " of the grid";
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

namespace {

bool synchronises(const Access& a, const Target& t) {
  return a.strong && (a.w.launch->checks & KV_SIMT_CHECK_RACE) &&
         (t.space == Space::kShared || t.space == Space::kGlobal);
}

SyncVariable& variable_of(const Access& a, const Target& t) {
  const bool global = t.space == Space::kGlobal;
  return a.w.launch->cold->sync.variables[global ? t.address : a.w.block->index << 20 | t.address];
}

/// A strong read takes over what writers of the address have published.
void acquire(const Access& a, const Target& t) {
  if (!synchronises(a, t)) return;
  const SyncVariable& variable = variable_of(a, t);
  const Block& b = *a.w.block;
  if (const auto warps = variable.warps.find(b.index); warps != variable.warps.end()) {
    a.w.clock.absorb(warps->second.data());
  }
  if (t.space == Space::kGlobal && !variable.blocks.empty()) {
    join(a.w.launch->cold->sync.acquired[b.global_stamp & BlockStamp::kBlock], variable.blocks);
  }
}

/// A strong write publishes what its warp and block have done and seen.
void release(const Access& a, const Target& t) {
  if (!synchronises(a, t)) return;
  LaunchCold& cold = *a.w.launch->cold;
  Block& b = *a.w.block;
  SyncVariable& variable = variable_of(a, t);
  a.w.clock.publish(variable.warps[b.index].data());
  a.w.clock.sync_lanes();
  if (t.space != Space::kGlobal) return;
  const uint32_t me = b.global_stamp & BlockStamp::kBlock;
  if (const auto mine = cold.sync.acquired.find(me); mine != cold.sync.acquired.end()) {
    join(variable.blocks, mine->second);
  }
  const uint32_t clock = b.global_stamp >> BlockStamp::kClockShift;
  variable.blocks[me] = clock;
  // What the block does from now on is not published. It gets a clock of its own, within reason.
  if (clock - (a.w.launch->global_floor >> BlockStamp::kClockShift) < BlockStamp::kPublishMax) {
    b.global_stamp += 1u << BlockStamp::kClockShift;
    cold.clock_max = std::max(cold.clock_max, clock + 1);
  }
}

// --- undefined data

}  // namespace

/// A read of shared bytes that an unfinished cp.async will write.
bool pending_copy(const Access& a, const Target& t) {
  if (t.space != Space::kShared) return false;
  for (const Warp& warp : a.w.block->cold->warps) {
    for (uint32_t k = 0; k < warp.pending_copies; ++k) {
      const CopyBatch& batch = warp.cold->copies[k];
      for (uint32_t l = 0; l < 32; ++l) {
        if (!(batch.mask >> l & 1)) continue;
        if (t.address < batch.to[l] + batch.bytes && batch.to[l] < t.address + a.bytes) {
          if ((a.w.launch->checks & KV_SIMT_CHECK_ASYNC) && fresh(a.w, a.i, KV_SIMT_KIND_ASYNC)) {
            file(a.w, a.i,
                 {.kind = KV_SIMT_KIND_ASYNC,
                  .lane = a.lane,
                  .address = t.address,
                  .bytes = a.bytes,
                  .space = t.space,
                  .message = thread_name(a.w, a.lane) + " reads shared offset " +
                             std::to_string(t.address) + " while the cp.async at " +
                             place_name(*meta_of(a.w, batch.ins).source) +
                             " has not been waited for"});
          }
          return true;
        }
      }
    }
  }
  return false;
}

void report_undefined_store(const Access& a, const Target& t, uint32_t bytes,
                            const Origin& origin) {
  const uint32_t kind = origin.why ? KV_SIMT_KIND_BARRIER : KV_SIMT_KIND_UNDEFINED;
  if (origin.why && !(a.w.launch->checks & KV_SIMT_CHECK_BARRIER)) return;
  if (!a.w.launch->check_undefined || !fresh_pending(a.w, a.i, kind)) return;
  const Report report = {.kind = kind,
                         .lane = a.lane,
                         .address = t.address,
                         .bytes = a.bytes,
                         .space = t.space,
                         .message = thread_name(a.w, a.lane) + " stores " +
                                    std::to_string(__builtin_popcount(bytes)) +
                                    " undefined bytes at " + hex(t.address) + " (" +
                                    extent_name(*a.w.launch->cold->space, t.address) + "); " +
                                    origin_name(a.w, origin)};
  if (!origin.load || origin.why) return file(a.w, a.i, report);
  file_unless_raced(a.w, a.i, report, race_place(a.w, ptx::Space(origin.space), origin.address));
}

namespace {

// --- registers

bool wide(const Access& a, uint32_t operand) { return meta_of(a.w, a.i).classes[operand] == '4'; }

uint64_t read_register(const Access& a, uint32_t operand) {
  if (wide(a, operand)) return slot<uint64_t>(a.w, a.i->r[operand])[a.lane];
  return slot<uint32_t>(a.w, a.i->r[operand])[a.lane];
}

void write_register(const Access& a, uint32_t operand, uint64_t value) {
  if (wide(a, operand)) {
    slot<uint64_t>(a.w, a.i->r[operand])[a.lane] = value;
  } else {
    slot<uint32_t>(a.w, a.i->r[operand])[a.lane] = uint32_t(value);
  }
}

uint64_t element(const uint8_t* from, uint32_t width) {
  uint64_t v = 0;
  std::memcpy(&v, from, width);
  return v;
}

}  // namespace

/// One bit for each byte to eight bits for each byte.
uint64_t spread(uint32_t bytes, uint32_t width) {
  uint64_t v = 0;
  for (uint32_t k = 0; k < width; ++k) {
    if (bytes >> k & 1) v |= uint64_t{0xff} << (8 * k);
  }
  return v;
}

namespace {

uint64_t extended(uint64_t value, uint32_t width, uint16_t flags) {
  if (!(flags & access_flags::kSigned) || width >= 8) return value;
  const uint32_t shift = 64 - 8 * width;
  const uint64_t v = uint64_t(int64_t(value << shift) >> shift);
  return flags & access_flags::kTo16 ? v & 0xffff : v;
}

void note_spin(Access& a, uint64_t value) {
  Warp& w = a.w;
  if (!(a.i->flags & access_flags::kStrong)) return;
  const uint32_t pc = pc_of(w, a.i);
  if (w.spin_pc == pc && w.spin_value == value) {
    if (++w.spins >= 4) w.slice = 0, w.spins = 4;
  } else {
    w.spins = 0;
  }
  w.spin_pc = pc;
  w.spin_value = value;
}

bool load_lane(Access& a, uint64_t address) {
  const Ins* i = a.i;
  const std::optional<Target> t = resolve(a, address);
  if (!t) return false;
  uint8_t data[32];
  read_bytes(a, *t, data);
  acquire(a, *t);
  check_race(a, *t, nullptr);
  uint32_t undefined = a.w.launch->check_undefined ? undefined_bytes(a, *t) : 0;
  if (undefined && pending_copy(a, *t)) undefined = 0;
  const Origin origin{meta_of(a.w, i).source, t->address, uint8_t(t->space), nullptr};
  for (uint32_t k = 0; k < i->count; ++k) {
    const uint32_t lost = undefined >> (k * i->width) & low_mask(i->width);
    write_register(a, k, extended(element(data + k * i->width, i->width), i->width, i->flags));
    uint64_t lost_bits = spread(lost, i->width);
    if (lost && (i->flags & access_flags::kSigned)) lost_bits = ~uint64_t{0};
    set_undefined(a.w, i->r[k], wide(a, k), a.lane, lost_bits, origin);
  }
  note_spin(a, element(data, std::min<uint32_t>(8, a.bytes)));
  return true;
}

bool store_lane(Access& a, uint64_t address) {
  const Ins* i = a.i;
  const std::optional<Target> t = resolve(a, address);
  if (!t) return false;
  uint8_t data[32];
  uint32_t undefined = 0;
  const Origin* origin = nullptr;
  for (uint32_t k = 0; k < i->count; ++k) {
    const uint64_t value = read_register(a, 1 + k);
    std::memcpy(data + k * i->width, &value, i->width);
    const uint64_t lost = undefined_bits(a.w, i->r[1 + k], wide(a, 1 + k), a.lane);
    for (uint32_t b = 0; b < i->width; ++b) {
      if (lost >> (8 * b) & 0xff) undefined |= 1u << (k * i->width + b);
    }
    if (lost && !origin) origin = &origin_of(a.w, i->r[1 + k]);
  }
  undefined &= low_mask(a.bytes);
  if (undefined && t->space == Space::kGlobal) report_undefined_store(a, *t, undefined, *origin);
  check_race(a, *t, data);
  write_bytes(a, *t, data);
  set_undefined_bytes(a, *t, a.w.launch->check_undefined ? undefined : 0);
  release(a, *t);
  a.w.spins = 0;
  return true;
}

bool atomic_lane(Access& a, uint64_t address) {
  const Ins* i = a.i;
  const std::optional<Target> t = resolve(a, address);
  if (!t) return false;
  const uint32_t first = i->flags & access_flags::kNoResult ? 0 : 1;  // of the address operand
  uint8_t data[16];
  read_bytes(a, *t, data);
  const uint32_t lost = a.w.launch->check_undefined ? undefined_bytes(a, *t) : 0;
  acquire(a, *t);
  check_race(a, *t, nullptr);
  const uint64_t before = element(data, i->width);
  const uint64_t operand = read_register(a, first + 1);
  const uint64_t second = meta_of(a.w, i).sources > 2 ? read_register(a, first + 2) : 0;
  const uint64_t after = atomic_result(AtomicKind(i->mode >> 4), AtomicType(i->mode & 15), before,
                                       operand, second, t->space == Space::kGlobal);
  std::memcpy(data, &after, i->width);
  write_bytes(a, *t, data);
  const Origin origin{meta_of(a.w, i).source, t->address, uint8_t(t->space), nullptr};
  const bool replaces = AtomicKind(i->mode >> 4) == AtomicKind::kExchange;
  if (lost && !replaces) report_undefined_store(a, *t, lost, origin);
  uint64_t lost_operand = undefined_bits(a.w, i->r[first + 1], wide(a, first + 1), a.lane);
  if (lost_operand && t->space == Space::kGlobal) {
    report_undefined_store(a, *t, low_mask(i->width), origin_of(a.w, i->r[first + 1]));
  }
  if (!lost || replaces) set_undefined_bytes(a, *t, lost_operand ? low_mask(i->width) : 0);
  if (first == 1) {
    write_register(a, 0, before);
    set_undefined(a.w, i->r[0], wide(a, 0), a.lane, spread(lost, i->width), origin);
  }
  release(a, *t);
  if (after != before) {
    a.w.spins = 0;
  } else {
    note_spin(a, before);
  }
  return true;
}

/// The slot of the address operand follows the destinations.
uint64_t address_of(const Warp& w, const Ins* i, uint32_t lane) {
  const uint32_t operand = meta_of(w, i).destinations;
  switch (AddressMode(i->mode)) {
    case AddressMode::kConstant:
      return uint64_t(i->imm);
    case AddressMode::kRegister32: {
      const uint32_t base = slot<uint32_t>(const_cast<Warp&>(w), i->r[operand])[lane];
      return uint32_t(base + uint32_t(i->imm));
    }
    default:
      return slot<uint64_t>(const_cast<Warp&>(w), i->r[operand])[lane] + uint64_t(i->imm);
  }
}

}  // namespace

const Ins* slow_access(Warp& w, const Ins* i) {
  const auto kind = AccessKind(i->extra);
  Access a{w, i, Space(i->space)};
  a.strong = i->flags & access_flags::kStrong;
  a.bytes = uint32_t(i->width) * i->count;
  a.read = kind != AccessKind::kStore;
  a.write = kind != AccessKind::kLoad;
  const uint32_t used = meta_of(w, i).source ? meta_of(w, i).source->used_bytes_mask : 0;
  if (used && kind == AccessKind::kLoad) a.used = used;
  // Addresses first: a destination may be the address register.
  uint64_t address[32];
  for (uint32_t l = 0; l < 32; ++l) {
    if (w.exec >> l & 1) {
      address[l] = kind == AccessKind::kAtomic ? atomic_address(w, i, l) : address_of(w, i, l);
    }
  }
  for (uint32_t mask = w.exec; mask; mask &= mask - 1) {
    a.lane = uint32_t(__builtin_ctz(mask));
    const bool ok = kind == AccessKind::kLoad    ? load_lane(a, address[a.lane])
                    : kind == AccessKind::kStore ? store_lane(a, address[a.lane])
                                                 : atomic_lane(a, address[a.lane]);
    if (!ok) return nullptr;
  }
  return resume_after(w, i);
}

Extent* find_extent(uint64_t address) { return AddressSpace::instance().find(address); }

bool touch_lanes(Extent& extent, uint64_t origin, const uint32_t* offsets, uint32_t bytes) {
  const uint32_t low = *std::min_element(offsets, offsets + 32);
  const uint32_t high = *std::max_element(offsets, offsets + 32) + bytes;
  if (high - low > AddressSpace::kGranule) return false;
  return AddressSpace::instance().touch(extent, origin + low, high - low);
}

}  // namespace kv::simt
