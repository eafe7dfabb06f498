// Purpose: the state of a warp, its block and its launch while they run.
// Contract: plain data, shared by code compiled for several instruction sets: members are read and
// written directly, and the few functions are forced inline (see check/race_stamp.h).
#pragma once

#include <cstdint>

#include "harness/simt/check/shared_race.h"
#include "harness/simt/control/kv_simt_control.h"
#include "harness/simt/exec/program.h"

namespace kv::simt {

struct Extent;
struct LaunchCold;
struct WarpCold;
struct BlockCold;

/// The last matrix A of an mma, as doubles (isa/product.h): a pure function of `kind` and `words`.
struct MatrixMemo {
  uint32_t kind = 0;  // element type and K; 0: nothing yet
  uint32_t different[2] = {};
  alignas(64) uint32_t words[4][32] = {};
  alignas(64) double values[16 * 32] = {};
};

/// So often in a row a warp reads the same value at the same place before others get a turn.
inline constexpr uint8_t kSpins = 4;

/// Settings of a launch that handlers read.
struct LaunchState {
  Extent** hints = nullptr;  // last extent used by each memory instruction
  uint32_t checks = 0;
  uint32_t rounding = 0;
  uint64_t rounding_seed = 0;
  bool check_undefined = false;
  bool check_shared_race = false;
  bool check_global_race = false;
  bool check_stream_race = false;  // some older work is not ordered before the launch
  bool whole_chunks = true;        // chunks of global memory have stamps of their own
  bool shared_chunks = false;      // so have those of shared memory
  uint8_t shared_shift = 2, global_shift = 2;
  uint32_t global_floor = 0;  // stamps up to it are older than the launch
  uint32_t parameter_bytes = 0;
  const uint8_t* parameters = nullptr;
  kv_simt_counters* counters = nullptr;
  MatrixMemo* matrix_memo = nullptr;
  LaunchCold* cold = nullptr;
};

struct Block {
  uint8_t* shared = nullptr;
  uint8_t* shared_bits = nullptr;
  uint32_t* writers = nullptr;
  uint32_t* readers = nullptr;
  SharedChunk* chunks = nullptr;
  uint32_t oldest = 0;  // stamp: everything up to it is ordered before every warp
  uint32_t shared_bytes = 0;
  uint32_t global_stamp = 0;
  uint32_t fenced_clock = 0;  // that of global_stamp at the last fence of the block; 0: none
  uint32_t threads = 0, warps = 0;
  uint64_t index = 0;
  uint32_t ctaid[3] = {};
  LaunchState* launch = nullptr;
  BlockCold* cold = nullptr;
};

enum class Stop : uint8_t {
  kNone,
  kSlice,
  kBarrier,
  kDone,
  kFault,
  kMisaligned,
  kTrap,
  kAssert,
  kUnsupported
};

struct Fragment {
  uint32_t pc = 0, mask = 0;
  bool parked = false;
  uint32_t awaited = 0;  // parked: lanes that it waits for, and those that had exited before
  uint32_t dead = 0;
};

struct Warp {
  uint8_t* rf = nullptr;
  uint32_t* predicates = nullptr;
  uint32_t exec = 0;          // lanes that execute the current instruction
  uint32_t write = 0;         // exec, and lanes that do not exist: nobody sees what they hold
  uint32_t active = 0;        // lanes of the current fragment
  uint32_t dead = 0;          // lanes that have exited or never existed
  uint32_t missing = 0;       // lanes that never existed
  int64_t slice = 0;          // warp instructions left before the scheduler is asked
  const Ins* code = nullptr;  // Program::code, or taint_code while something is undefined
  const Ins* clean_code = nullptr;
  Block* block = nullptr;
  LaunchState* launch = nullptr;
  uint32_t pc = 0;  // where to go on, in clean code
  uint32_t fragments = 0;
  Fragment fragment[32];
  WarpClock clock;
  uint32_t id = 0;
  Stop stop = Stop::kNone;
  bool forced = false;    // go through a *.sync although lanes are missing
  bool rotating = false;  // fair turn of a fragment that is not the lowest
  uint8_t spins = 0;      // the same strong load, the same value
  uint32_t spin_pc = 0;
  uint64_t spin_value = 0;
  uint32_t tainted = 0;  // slots and predicates that hold something undefined
  uint32_t guard_undefined = 0;
  uint64_t warp_instructions = 0, thread_instructions = 0;
  uint32_t* local = nullptr;  // word k of lane l at [k * 32 + l]
  uint8_t* local_bits = nullptr;
  uint32_t local_words = 0;
  uint32_t barrier_id = 0, barrier_count = 0, barrier_flags = 0;
  uint32_t barrier_lanes = 0, barrier_votes = 0;  // of barrier.red
  uint16_t barrier_result = 0;
  uint8_t barrier_mode = 0;
  uint32_t pending_copies = 0;  // queued cp.async batches
  uint32_t copy_group = 0;      // of the group being filled
  WarpCold* cold = nullptr;
};

template <class T>
KV_INLINE T* slot(Warp& w, uint16_t index) {
  return static_cast<T*>(__builtin_assume_aligned(w.rf + (uint32_t(index) << 7), 64));
}
KV_INLINE void set_exec(Warp& w, uint32_t mask) {
  w.exec = mask;
  w.write = mask | w.dead;
}

alignas(64) inline constexpr uint32_t kLaneBit[32] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

// The last call of a handler becomes a jump in optimised builds; elsewhere the loop in execute()
// makes it, so that the stack does not grow.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
#define KV_NEXT(w, i) return (i)->run(w, i)
#else
#define KV_NEXT(w, i) return (i)
#endif

}  // namespace kv::simt
