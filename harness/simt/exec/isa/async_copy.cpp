// cp.async: queued when issued, delivered when its group is waited for (PTX ISA 9.0 section
// 9.7.9.25). Until then the destination is undefined, so that a missing wait shows.
#include "harness/simt/exec/async_copy.h"

#include "harness/simt/exec/isa/place.h"

namespace kv::simt::KV_ISA {
namespace {

/// r[0] destination (32 bits), r[1] source (64 bits), r[2] bytes to read or a predicate to ignore
/// the source (flags). width: bytes to write.
template <u32 kBytes>
KV_ATTEMPT issue(Warp& w, const Ins* i) {
  Place to, from;
  const u32 mask = w.exec;
  if (!shared_place<kBytes, kBytes != 16>(w, i, i->r[0], 0, mask, to)) return false;
  alignas(64) u32 count[32];
  u32 reading = mask;
  if (i->flags & copy_flags::kSize) {
    const u32* n = slot<u32>(w, i->r[2]);
    alignas(64) u32 some[32];
    u32 odd = 0;
    KV_LANES {
      const u32 c = (mask & kLaneBit[l]) ? n[l] : 0;
      count[l] = c;
      some[l] = c ? ~0u : 0;
      odd |= some[l] & (c ^ kBytes);
    }
    if (odd) return false;
    reading = top_bits(some);
  } else if (i->flags & copy_flags::kIgnore) {
    reading = mask & ~w.predicates[i->r[2]];
    KV_LANES count[l] = (reading & kLaneBit[l]) ? kBytes : 0;
  } else {
    KV_LANES count[l] = (mask & kLaneBit[l]) ? kBytes : 0;
  }
  const u64* source = slot<u64>(w, i->r[1]);
  const u64 offset = copy_source_offset(*i);
  if (reading) {
    if (!global_place<kBytes, false>(w, i->hint, source, offset, reading, from)) {
      return false;
    }
  }
  if (w.launch->check_shared_race && shared_race<kBytes, true>(w, to, mask)) return false;
  if (reading && w.launch->check_global_race && global_race<kBytes, false>(w, from, reading))
    return false;
  if (w.launch->check_undefined) {
    for (u32 m = mask; m; m &= m - 1) {
      const u32 off = to.off[__builtin_ctz(m)];
      if (kBytes == 16) {
        __builtin_memset(to.bits + (off >> 3), 0, 2);
      } else {
        to.bits[off >> 3] &= u8(~(kAllBytes<kBytes> << (off & 7)));
      }
    }
  }
  CopyBatch& batch = *new_copy(w);
  batch.group = w.copy_group;
  batch.mask = mask;
  batch.bytes = kBytes;
  batch.clock_base = w.clock.base;
  batch.ins = i;
  const bool known = reading == 0 || (from.extent->flags & Extent::kDefined);
  batch.source_defined = known || !w.launch->check_undefined || all_defined<kBytes>(from);
  batch.whole = reading == mask;
  if (!batch.whole) {
    for (int l = 0; l < 32; ++l) batch.count[l] = u8(count[l]);
  }
  KV_LANES batch.to[l] = to.off[l];
  KV_LANES batch.from[l] = source[l] + offset;
  return true;
}

template <bool (*Try)(Warp&, const Ins*)>
KV_STEP attempt_copy(Warp& w, const Ins* i) {
  if (!Try(w, i)) [[unlikely]]
    return slow_copy(w, i);
  KV_NEXT(w, i + 1);
}

KV_STEP commit(Warp& w, const Ins* i) {
  ++w.copy_group;
  KV_NEXT(w, i + 1);
}

/// All groups but the latest `imm`; imm < 0: everything, also what is not committed.
KV_STEP wait(Warp& w, const Ins* i) {
  if (w.pending_copies != 0) {
    const u32 keep = u32(i->imm);
    const u32 before = i->imm < 0 ? ~0u : w.copy_group > keep ? w.copy_group - keep : 0;
    deliver_copies(w, before);
  }
  KV_NEXT(w, i + 1);
}

constexpr FormRow kRows[] = {
    {"~cp.async.4", "", Taint::kMemory, attempt_copy<issue<4>>},
    {"~cp.async.8", "", Taint::kMemory, attempt_copy<issue<8>>},
    {"~cp.async.16", "", Taint::kMemory, attempt_copy<issue<16>>},
    {"~cp.async.commit", "", Taint::kNone, commit},
    {"~cp.async.wait", "", Taint::kNone, wait},
};

}  // namespace

FormRows async_copy_forms() { return rows_of(kRows); }

}  // namespace kv::simt::KV_ISA
