// Memory lane by lane: the exact path behind the fast ones of isa/memory.cpp. Lanes go in ascending
// order. Faults (bounds, freed, misaligned, wrong space) stop the kernel; everything else reports
// and goes on.
#include "harness/simt/exec/access.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "harness/simt/exec/atomic.h"
#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/report.h"
#include "harness/simt/exec/taint.h"

namespace kv::simt {

using ptx::Space;

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
    if (++w.spins >= kSpins) w.slice = 0, w.spins = kSpins;
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

bool rights_allow(const Warp& w, const Extent& extent, uint64_t origin,
                  const uint32_t (&offsets)[32], uint32_t bytes, bool write) {
  if (!(w.launch->checks & KV_SIMT_CHECK_MEMORY)) return true;
  const uint32_t wanted =
      write ? KV_SIMT_ACCESS_READ_WRITE & ~KV_SIMT_ACCESS_READ : KV_SIMT_ACCESS_READ;
  return AddressSpace::instance().allows(extent, origin, offsets, bytes, wanted);
}

bool touch_lanes(Extent& extent, uint64_t origin, const uint32_t* offsets, uint32_t bytes) {
  const uint32_t low = *std::min_element(offsets, offsets + 32);
  const uint32_t high = *std::max_element(offsets, offsets + 32) + bytes;
  if (high - low > AddressSpace::kGranule) return false;
  return AddressSpace::instance().touch(extent, origin + low, high - low);
}

}  // namespace kv::simt
