#include "harness/simt/exec/branching.h"

#include <algorithm>

#include "harness/core/check.h"
#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/report.h"
#include "harness/simt/exec/taint.h"

namespace kv::simt {
namespace {

KV_INLINE void account(Warp& w, const Ins* i) {
  const Cost cost = Cost::of(*i);
  w.slice -= cost.all;
  w.warp_instructions += cost.all;
  w.thread_instructions += uint64_t{cost.unguarded} * uint32_t(__builtin_popcount(w.active));
}

KV_INLINE uint32_t guarded(const Warp& w, const Ins* i) {
  if (i->guard == kNoGuard) return w.active;
  const uint32_t p = w.predicates[i->guard >> 1];
  return w.active & (i->guard & 1 ? ~p : p);
}

void set_active(Warp& w, uint32_t mask) {
  w.active = mask;
  set_exec(w, mask);
}

void push_fragment(Warp& w, uint32_t pc, uint32_t mask, bool parked) {
  KV_CHECK(w.fragments < 32, "more fragments than lanes");
  w.fragment[w.fragments++] = {pc, mask, parked, 0, 0};
}

Fragment take_fragment(Warp& w, uint32_t index) {
  const Fragment f = w.fragment[index];
  w.fragment[index] = w.fragment[--w.fragments];
  return f;
}

/// Lanes of every other fragment at `pc` join.
uint32_t merge_at(Warp& w, uint32_t pc, uint32_t mask) {
  for (uint32_t k = 0; k < w.fragments;) {
    if (w.fragment[k].pc == pc) {
      mask |= take_fragment(w, k).mask;
    } else {
      ++k;
    }
  }
  return mask;
}

/// Index of the fragment with the lowest pc among those (not) parked; -1 if there is none.
int lowest(const Warp& w, bool parked) {
  int best = -1;
  for (uint32_t k = 0; k < w.fragments; ++k) {
    if (w.fragment[k].parked != parked) continue;
    if (best < 0 || w.fragment[k].pc < w.fragment[best].pc) best = int(k);
  }
  return best;
}

std::string lanes_name(uint32_t lanes) { return "lanes " + hex(lanes); }

void report_absent(Warp& w, const Ins* i, uint32_t absent, const char* why) {
  if (!(w.launch->checks & KV_SIMT_CHECK_BARRIER) || !fresh(w, i, KV_SIMT_KIND_BARRIER)) return;
  const auto lane = uint32_t(__builtin_ctz(w.active));
  file(w, i,
       {.kind = KV_SIMT_KIND_BARRIER,
        .lane = lane,
        .message = thread_name(w, lane) + ": waits for " + lanes_name(absent) + " of its warp, " +
                   why + "; " + lanes_name(w.active) + " are here"});
}

/// The current fragment is gone or parked: go on with another one.
const Ins* next_fragment(Warp& w) {
  int k = lowest(w, false);
  if (k < 0) {
    // Everybody waits for somebody: let the lowest through with the lanes that it has.
    k = lowest(w, true);
    w.forced = true;
  }
  const Fragment f = take_fragment(w, uint32_t(k));
  set_active(w, w.forced ? f.mask : merge_at(w, f.pc, f.mask));
  const Ins* i = at(w, f.pc);
  // A fragment that waited inside a block: what it did there is counted already.
  if (f.parked) {
    if (const uint32_t left = f.awaited & w.dead & ~f.dead; left && i->run != barrier) {
      report_absent(w, i, left, "which exit instead");
    }
    w.warp_instructions -= i->target;
    w.thread_instructions -= uint64_t{i->target} * uint32_t(__builtin_popcount(f.mask));
  }
  return i;
}

/// At the end of a basic block with other fragments about, or with the time slice used up.
[[gnu::noinline]] const Ins* leave_block(Warp& w, const Ins* next) {
  uint32_t pc = pc_of(w, next);
  if (w.fragments != 0) {
    set_active(w, merge_at(w, pc, w.active));
    const int k = lowest(w, false);
    if (k >= 0 && !w.rotating && w.fragment[k].pc < pc) {
      push_fragment(w, pc, w.active, false);
      const Fragment f = take_fragment(w, uint32_t(k));
      set_active(w, merge_at(w, f.pc, f.mask));
      pc = f.pc;
    }
  }
  if (w.slice <= 0) {
    w.pc = pc;
    w.stop = Stop::kSlice;
    return nullptr;
  }
  return at(w, pc);
}

[[gnu::noinline]] const Ins* diverge(Warp& w, const Ins* i, uint32_t taken) {
  ++w.launch->counters->divergent_branches;
  push_fragment(w, i->target / (tainting(w) ? 2 : 1), taken, false);
  set_active(w, w.active & ~taken);
  return leave_block(w, i + 1);
}

/// Parks the current fragment at `i` and goes on with another one.
const Ins* park(Warp& w, const Ins* i, uint32_t awaited) {
  push_fragment(w, pc_of(w, i), w.active, true);
  w.fragment[w.fragments - 1].awaited = awaited;
  w.fragment[w.fragments - 1].dead = w.dead;
  return next_fragment(w);
}

}  // namespace

uint32_t pc_of(const Warp& w, const Ins* i) {
  const auto index = uint32_t(i - w.code);
  return tainting(w) ? index / 2 : index;
}
const Ins* at(const Warp& w, uint32_t pc) { return w.code + (tainting(w) ? pc * 2 : pc); }

const Ins* block_end(Warp& w, const Ins* i) {
  account(w, i);
  if (w.fragments != 0 || w.slice <= 0) [[unlikely]]
    return leave_block(w, i + 1);
  KV_NEXT(w, i + 1);
}

const Ins* leave_prologue(Warp&, const Ins*) { return nullptr; }

const Ins* branch(Warp& w, const Ins* i) {
  account(w, i);
  const uint32_t taken = guarded(w, i);
  const Ins* next = w.code + i->target;
  if (taken != w.active) {
    if (taken != 0) [[unlikely]]
      return diverge(w, i, taken);
    next = i + 1;
  }
  if (w.fragments != 0 || w.slice <= 0) [[unlikely]]
    return leave_block(w, next);
  KV_NEXT(w, next);
}

const Ins* exit_lanes(Warp& w, const Ins* i) {
  account(w, i);
  const uint32_t leaving = guarded(w, i);
  w.dead |= leaving;
  set_active(w, w.active & ~leaving);
  if (w.active != 0) return leave_block(w, i + 1);
  if (w.fragments != 0) return next_fragment(w);
  w.stop = Stop::kDone;
  return nullptr;
}

const Ins* guard_begin(Warp& w, const Ins* i) {
  const uint32_t mask = guarded(w, i);
  if (mask == 0) {
    w.guard_undefined = 0;
    KV_NEXT(w, i + i->target);
  }
  set_exec(w, mask);
  if (i->mode) w.thread_instructions += uint32_t(__builtin_popcount(mask));
  KV_NEXT(w, i + 1);
}

const Ins* guard_end(Warp& w, const Ins* i) {
  set_exec(w, w.active);
  KV_NEXT(w, i + 1);
}

const Ins* barrier(Warp& w, const Ins* i) {
  const uint32_t arriving = guarded(w, i);
  if (arriving == 0) {
    account(w, i);
    return leave_block(w, i + 1);
  }
  if (arriving != w.active) {
    const uint32_t passing = w.active & ~arriving;
    w.thread_instructions +=
        uint64_t{Cost::of(*i).unguarded} * uint32_t(__builtin_popcount(passing));
    push_fragment(w, pc_of(w, i) + 1, passing, false);
    set_active(w, arriving);
  }
  if ((~w.dead & ~w.active) != 0) {
    if (const Ins* other = await_lanes(w, i, ~w.dead)) return other;
    const uint32_t absent = ~w.dead & ~w.active;
    if (absent && (i->flags & barrier_flags::kAligned) &&
        (w.launch->checks & KV_SIMT_CHECK_BARRIER) && fresh(w, i, KV_SIMT_KIND_BARRIER)) {
      const auto lane = uint32_t(__builtin_ctz(w.active));
      file(w, i,
           {.kind = KV_SIMT_KIND_BARRIER,
            .lane = lane,
            .message = thread_name(w, lane) +
                       ": a barrier in divergent code: " + lanes_name(w.active) +
                       " of the warp arrive, " + lanes_name(absent) + " are elsewhere"});
    }
  }
  account(w, i);
  const auto lane = uint32_t(__builtin_ctz(w.active));
  const bool reduces = i->flags & barrier_flags::kReduce;
  const uint32_t first = reduces ? 1 : 0;
  w.barrier_id = slot<uint32_t>(w, i->r[first])[lane] & 15;
  w.barrier_count =
      i->flags & barrier_flags::kHasCount ? slot<uint32_t>(w, i->r[first + 1])[lane] : 0;
  if (reduces) {
    w.barrier_lanes = w.active;
    w.barrier_votes = w.predicates[i->r[3]] & w.active;
    w.barrier_result = i->r[0];
    w.barrier_mode = i->mode;
  }
  w.barrier_flags = i->flags;
  w.pc = pc_of(w, i) + 1;
  w.stop = Stop::kBarrier;
  return nullptr;
}

const Ins* warp_sync(Warp& w, const Ins* i) {
  const uint32_t* masks = slot<uint32_t>(w, i->r[0]);  // tiles of a warp name themselves only
  uint32_t named = 0, strangers = 0;
  for (uint32_t l = 0; l < 32; ++l) {
    if (!(w.exec >> l & 1)) continue;
    named |= masks[l];
    strangers |= ~masks[l] & 1u << l;
  }
  if (named & ~w.exec & ~w.dead) {
    if (const Ins* other = await_lanes(w, i, named)) return other;
  }
  if (strangers) report_member_mask(w, i, masks[__builtin_ctz(strangers)], strangers);
  w.clock.sync_lanes();
  if (w.block->warps == 1) w.block->oldest = w.clock.floor;
  KV_NEXT(w, i + 1);
}

const Ins* await_lanes(Warp& w, const Ins* i, uint32_t needed) {
  if (w.forced) {
    w.forced = false;
    const uint32_t absent = needed & ~w.active & ~w.dead;
    if (i->run != barrier && absent) report_absent(w, i, absent, "which never arrive");
    return nullptr;
  }
  const uint32_t pc = pc_of(w, i);
  const uint32_t merged = merge_at(w, pc, w.active);
  if (merged != w.active) {
    // The lanes that had waited executed the first part of the block on their own, and counted it.
    set_active(w, merged);
    if ((needed & ~merged & ~w.dead) == 0) return at(w, pc);
  }
  w.warp_instructions += i->target;
  w.thread_instructions += uint64_t{i->target} * uint32_t(__builtin_popcount(w.active));
  return park(w, i, needed);
}

void report_member_mask(Warp& w, const Ins* i, uint32_t named, uint32_t executing) {
  if (!(w.launch->checks & KV_SIMT_CHECK_BARRIER) || !fresh(w, i, KV_SIMT_KIND_BARRIER)) return;
  const auto lane = uint32_t(__builtin_ctz(executing & ~named));
  file(w, i,
       {.kind = KV_SIMT_KIND_BARRIER,
        .lane = lane,
        .message = thread_name(w, lane) + ": the member mask " + hex(named) +
                   " does not name this lane (" + std::to_string(lane) + ")"});
}

const Ins* trap(Warp& w, const Ins* i) {
  const auto lane = uint32_t(__builtin_ctz(w.exec));
  w.stop = Stop::kTrap;
  if (fresh(w, i, KV_SIMT_KIND_TRAP)) {
    file(w, i,
         {.kind = KV_SIMT_KIND_TRAP, .lane = lane, .message = thread_name(w, lane) + ": trap"});
  }
  return nullptr;
}

const Ins* yield_slice(Warp& w, const Ins* i) {
  w.slice = 0;
  KV_NEXT(w, i + 1);
}

void run_warp(Warp& w) {
  w.stop = Stop::kNone;
  const Ins* i = at(w, w.pc);
  while (i) i = i->run(w, i);
}

void run_prologue(Warp& w) {
  w.dead = 0;
  set_active(w, ~0u);
  for (const Ins* i = w.clean_code; i;) i = i->run(w, i);
}

void rotate_fragments(Warp& w) {
  if (w.fragments == 0) {
    w.rotating = false;
    return;
  }
  // The next one up from the current instruction, or round to the lowest.
  int next = -1;
  for (uint32_t k = 0; k < w.fragments; ++k) {
    const Fragment& f = w.fragment[k];
    if (f.parked || f.pc < w.pc) continue;
    if (next < 0 || f.pc < w.fragment[next].pc) next = int(k);
  }
  if (next < 0) next = lowest(w, false);
  if (next < 0) return;
  w.rotating = w.fragment[next].pc > w.pc;
  const Fragment f = take_fragment(w, uint32_t(next));
  push_fragment(w, w.pc, w.active, false);
  set_active(w, merge_at(w, f.pc, f.mask));
  w.pc = f.pc;
}

}  // namespace kv::simt
