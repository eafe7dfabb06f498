// Purpose: the queue of cp.async.
// Contract: batches are delivered in order of issue. Ins: see isa/async_copy.cpp; the offset of the
// source address is in `target`, that of the destination in `imm`.
#pragma once

#include <cstdint>

#include "harness/simt/exec/warp.h"

namespace kv::simt {

/// One cp.async of a warp.
struct CopyBatch {
  uint32_t group = 0, mask = 0;
  uint32_t bytes = 16;
  bool source_defined = true;  // every byte read was defined when the copy was issued
  bool whole = false;          // every lane reads all its bytes
  uint32_t clock_base = 0;     // of the warp when the destination was stamped
  const Ins* ins = nullptr;
  uint64_t from[32];
  uint32_t to[32];
  uint8_t count[32];  // bytes to read; the rest is zero. Of no meaning where all are read
  uint32_t wanted(uint32_t lane) const { return whole ? bytes : count[lane]; }
};

namespace copy_flags {
inline constexpr uint16_t kSize = 1;    // r[2]: bytes to read
inline constexpr uint16_t kIgnore = 2;  // r[2]: predicate, true: read nothing
}  // namespace copy_flags

KV_INLINE uint64_t copy_source_offset(const Ins& i) { return uint64_t(int64_t(int32_t(i.target))); }

CopyBatch* new_copy(Warp& w);
/// Delivers the groups below `before`.
void deliver_copies(Warp& w, uint32_t before);
/// Lane by lane, with every check.
const Ins* slow_copy(Warp& w, const Ins* i);

}  // namespace kv::simt
