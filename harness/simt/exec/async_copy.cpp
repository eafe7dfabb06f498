#include "harness/simt/exec/async_copy.h"

#include <algorithm>
#include <cstring>

#include "harness/simt/exec/access.h"
#include "harness/simt/exec/cold.h"
#include "harness/simt/memory/bits.h"

namespace kv::simt {
namespace {

typedef uint64_t Chunk __attribute__((vector_size(16)));

/// The usual case: lanes copy 16 defined bytes, or fill as many with zeros.
void deliver_chunks(Warp& w, const CopyBatch& batch) {
  uint8_t *const shared = w.block->shared, *const bits = w.block->shared_bits;
  const uint16_t defined = 0xffff;
  const bool marks = w.launch->check_undefined;
  if (batch.whole && batch.mask == ~0u) {
    for (uint32_t lane = 0; lane < 32; ++lane) {
      std::memcpy(shared + batch.to[lane], reinterpret_cast<void*>(batch.from[lane]), 16);
    }
    for (uint32_t lane = 0; marks && lane < 32; ++lane) {
      std::memcpy(bits + (batch.to[lane] >> 3), &defined, 2);
    }
    return;
  }
  for (uint32_t m = batch.mask; m; m &= m - 1) {
    const auto lane = uint32_t(__builtin_ctz(m));
    Chunk chunk = {};
    if (batch.wanted(lane)) std::memcpy(&chunk, reinterpret_cast<void*>(batch.from[lane]), 16);
    std::memcpy(shared + batch.to[lane], &chunk, 16);
    if (marks) std::memcpy(bits + (batch.to[lane] >> 3), &defined, 2);
  }
}

bool is_of_chunks(const CopyBatch& batch) {
  if (batch.bytes != 16 || !batch.source_defined) return false;
  for (uint32_t m = batch.whole ? 0 : batch.mask; m; m &= m - 1) {
    const uint32_t count = batch.count[__builtin_ctz(m)];
    if (count != 0 && count != 16) return false;
  }
  return true;
}

/// The bytes of one lane of a batch arrive.
void deliver_lane(Warp& w, const CopyBatch& batch, uint32_t lane) {
  Block& b = *w.block;
  const uint32_t to = batch.to[lane], count = batch.wanted(lane);
  uint8_t data[16] = {};
  if (count) std::memcpy(data, reinterpret_cast<const void*>(batch.from[lane]), count);
  std::memcpy(b.shared + to, data, batch.bytes);
  bits::set(b.shared_bits, to, batch.bytes);
  if (!batch.source_defined && count) {
    bits::copy(b.shared_bits, to, AddressSpace::bits(), AddressSpace::bit(batch.from[lane]), count);
  }
}

/// The write becomes visible to its thread now; others need a barrier after this.
void stamp_lane(Warp& w, const CopyBatch& batch, uint32_t lane) {
  Block& b = *w.block;
  const uint32_t shift = w.launch->shared_shift, me = w.clock.base + lane;
  const uint32_t to = batch.to[lane], first = to >> shift, granules = batch.bytes >> shift;
  if (w.launch->shared_chunks) {
    SharedChunk* const chunk = b.chunks + (to >> SharedChunk::kShift);
    if (batch.bytes == 16 && !touch_chunk<true>(chunk, me, w.clock.ordered(), b.oldest)) return;
    open_chunks(w, to, batch.bytes);
  }
  bool bad = false;
  for (uint32_t g = 0; g < granules; ++g) {
    bad |= write_one(b.writers + first + g, b.readers + first + g, me, w.clock.ordered());
  }
  if (!bad) return;
  Access a{w, batch.ins, ptx::Space::kShared};
  a.lane = lane;
  a.bytes = batch.bytes;
  a.write = true;
  check_race(a, {ptx::Space::kShared, batch.to[lane], b.shared + batch.to[lane], nullptr}, nullptr);
}

/// Shared memory from `low` up to `high`.
struct SharedRange {
  uint32_t low = ~0u, high = 0;
  void add(const CopyBatch& batch) {
    for (uint32_t l = 0; batch.mask == ~0u && l < 32; ++l) cover(batch.to[l], batch.bytes);
    if (batch.mask == ~0u) return;
    for (uint32_t m = batch.mask; m; m &= m - 1) cover(batch.to[__builtin_ctz(m)], batch.bytes);
  }
  void cover(uint32_t to, uint32_t bytes) {
    low = std::min(low, to);
    high = std::max(high, to + bytes);
  }
};

/// What a copy still under way will write is undefined, also where an earlier copy to the same
/// place has just arrived: a buffer that is filled again too early.
void undefine_pending(Warp& w, const SharedRange& arrived) {
  for (uint32_t k = 0; k < w.pending_copies; ++k) {
    const CopyBatch& batch = w.cold->copies[k];
    for (uint32_t m = batch.mask; m; m &= m - 1) {
      const uint32_t to = batch.to[__builtin_ctz(m)];
      if (to < arrived.high && arrived.low < to + batch.bytes) {
        bits::clear(w.block->shared_bits, to, batch.bytes);
      }
    }
  }
}

/// How much of the source a lane reads.
uint32_t wanted_bytes(Warp& w, const Ins* i, uint32_t lane) {
  if (i->flags & copy_flags::kSize) {
    const uint32_t n = slot<uint32_t>(w, i->r[2])[lane];
    return n < i->width ? n : i->width;
  }
  if (i->flags & copy_flags::kIgnore) return w.predicates[i->r[2]] >> lane & 1 ? 0 : i->width;
  return i->width;
}

}  // namespace

CopyBatch* new_copy(Warp& w) {
  std::vector<CopyBatch>& queue = w.cold->copies;
  if (w.pending_copies == queue.size()) queue.emplace_back();
  return &queue[w.pending_copies++];
}

void deliver_copies(Warp& w, uint32_t before) {
  std::vector<CopyBatch>& queue = w.cold->copies;
  const auto is_kept = [before](const CopyBatch& batch) { return batch.group >= before; };
  const bool some_stay = w.launch->check_undefined &&
                         std::any_of(queue.begin(), queue.begin() + w.pending_copies, is_kept);
  uint32_t kept = 0;
  SharedRange arrived;
  for (uint32_t k = 0; k < w.pending_copies; ++k) {
    const CopyBatch& batch = queue[k];
    if (is_kept(batch)) {
      if (kept != k) queue[kept] = batch;
      ++kept;
      continue;
    }
    // Stamps of the same clock are there since the copy was issued; whoever met them has said so.
    const bool stamps = w.launch->check_shared_race && batch.clock_base != w.clock.base;
    for (uint32_t m = stamps ? batch.mask : 0; m; m &= m - 1) {
      stamp_lane(w, batch, uint32_t(__builtin_ctz(m)));
    }
    if (is_of_chunks(batch)) {
      deliver_chunks(w, batch);
    } else {
      for (uint32_t m = batch.mask; m; m &= m - 1) {
        deliver_lane(w, batch, uint32_t(__builtin_ctz(m)));
      }
    }
    if (some_stay) arrived.add(batch);
  }
  w.pending_copies = kept;
  if (some_stay) undefine_pending(w, arrived);
}

const Ins* slow_copy(Warp& w, const Ins* i) {
  CopyBatch batch;
  batch.group = w.copy_group;
  batch.bytes = i->width;
  batch.source_defined = false;
  batch.clock_base = w.clock.base;
  batch.ins = i;
  for (uint32_t m = w.exec; m; m &= m - 1) {
    const auto lane = uint32_t(__builtin_ctz(m));
    Access to{w, i, ptx::Space::kShared};
    to.lane = lane;
    to.bytes = i->width;
    to.write = true;
    uint64_t address = uint64_t(i->imm);
    if (i->mode == uint8_t(AddressMode::kRegister32)) {
      address = uint32_t(slot<uint32_t>(w, i->r[0])[lane] + uint32_t(i->imm));
    } else if (i->mode == uint8_t(AddressMode::kRegister64)) {
      address += slot<uint64_t>(w, i->r[0])[lane];
    }
    const std::optional<Target> target = resolve(to, address);
    if (!target) return nullptr;
    const uint32_t count = wanted_bytes(w, i, lane);
    const uint64_t source = slot<uint64_t>(w, i->r[1])[lane] + copy_source_offset(*i);
    if (count) {
      Access from{w, i, ptx::Space::kGlobal};
      from.lane = lane;
      from.bytes = i->width;
      from.used = low_mask(count);
      from.read = true;
      const std::optional<Target> there = resolve(from, source);
      if (!there) return nullptr;
      from.bytes = count;
      check_race(from, *there, nullptr);
    }
    check_race(to, *target, nullptr);
    if (w.launch->check_undefined) set_undefined_bytes(to, *target, low_mask(i->width));
    batch.mask |= 1u << lane;
    batch.to[lane] = uint32_t(target->address);
    batch.from[lane] = source;
    batch.count[lane] = uint8_t(count);
  }
  *new_copy(w) = batch;
  return resume_after(w, i);
}

}  // namespace kv::simt
