// Purpose: what the inner loops call when something is rare: memory lane by lane, waits.
// Contract: compiled for the base instruction set only; declared here without inline code, so that
// the per-ISA files may include it.
#pragma once

#include <cstdint>

#include "harness/simt/exec/warp.h"

namespace kv::simt {

/// What slow_access does, in Ins::extra.
enum class AccessKind : uint16_t { kLoad, kStore, kAtomic };

/// Bits of Ins::flags for memory.
namespace access_flags {
inline constexpr uint16_t kSigned = 1;  // sign-extend the element
inline constexpr uint16_t kTo16 = 2;    // into a 16-bit register
inline constexpr uint16_t kStrong = 4;  // volatile, relaxed, acquire, release, atomics
inline constexpr uint16_t kAcquire = 8;
inline constexpr uint16_t kRelease = 16;
inline constexpr uint16_t kNoResult = 32;  // red
inline constexpr uint16_t kInBlock = 64;   // of the block's scope: not strong for other blocks
}  // namespace access_flags

/// A memory access lane by lane: every check, every report, undefined data. Returns the next
/// instruction, or null after a fault.
const Ins* slow_access(Warp& w, const Ins* i);

/// A fence: what the warp has done may be published from now on; of at least the whole device: what
/// its block has done.
const Ins* fence_in_block(Warp& w, const Ins* i);
const Ins* fence(Warp& w, const Ins* i);

Extent* find_extent(uint64_t address);
/// Backs the granules of a sparse extent under a warp's access; false: the lanes lie far apart, or
/// the memory limit is reached.
bool touch_lanes(Extent& extent, uint64_t origin, const uint32_t* offsets, uint32_t bytes);
/// The rights of every lane of an access to an extent that has bytes without some.
bool rights_allow(const Warp& w, const Extent& extent, uint64_t origin,
                  const uint32_t (&offsets)[32], uint32_t bytes, bool write);
/// ldmatrix and stmatrix, row by row, with every check.
const Ins* slow_matrix(Warp& w, const Ins* i);

/// A *.sync instruction whose lanes `needed` are not all here. Null: go on with those that are.
/// Otherwise run the returned instruction (other lanes catch up first).
const Ins* await_lanes(Warp& w, const Ins* i, uint32_t needed);
/// A *.sync instruction that some executing lane's mask does not name.
void report_member_mask(Warp& w, const Ins* i, uint32_t named, uint32_t executing);

/// The instruction after `i`, in the code that the warp's state asks for (see taint.h).
const Ins* resume_after(Warp& w, const Ins* i);
/// Lanes of slot `index` become wholly undefined (they read a lane that is not there).
void undefine_lanes(Warp& w, const Ins* i, uint16_t index, uint32_t lanes);

}  // namespace kv::simt
