// Purpose: the handlers of control flow, and the fragments of a diverged warp.
// Contract: a warp is one or more fragments (instruction, lanes). The lowest instruction runs
// first and fragments that meet become one; a fragment that waits for lanes (a *.sync) is parked.
// When a time slice ends, another fragment gets its turn, so that lanes that spin cannot starve
// the lane that they wait for.
#pragma once

#include "harness/simt/exec/state.h"

namespace kv::simt {

const Ins* block_end(Warp& w, const Ins* i);  // falls through to the next basic block
const Ins* leave_prologue(Warp& w, const Ins* i);
const Ins* branch(Warp& w, const Ins* i);       // target, guard
const Ins* exit_lanes(Warp& w, const Ins* i);   // ret of a kernel, exit
const Ins* guard_begin(Warp& w, const Ins* i);  // skips `target` instructions if no lane is left
const Ins* guard_end(Warp& w, const Ins* i);
const Ins* barrier(Warp& w, const Ins* i);    // {result,} id, count{, predicate}
const Ins* warp_sync(Warp& w, const Ins* i);  // r[0] member mask
const Ins* trap(Warp& w, const Ins* i);
const Ins* yield_slice(Warp& w, const Ins* i);  // nanosleep: the others first

/// Bits of Ins::flags of barrier.
namespace barrier_flags {
inline constexpr uint16_t kHasCount = 1;
inline constexpr uint16_t kArrive = 2;  // bar.arrive
inline constexpr uint16_t kAligned = 4;
inline constexpr uint16_t kReduce = 8;  // barrier.red: mode 0 popc, 1 and, 2 or
}  // namespace barrier_flags

/// Runs until the warp stops.
void run_warp(Warp& w);
/// What comes before Program::entry, for all lanes: nothing of it counts.
void run_prologue(Warp& w);
/// Chooses the fragment to run after a slice ended; called by the scheduler.
void rotate_fragments(Warp& w);

}  // namespace kv::simt
