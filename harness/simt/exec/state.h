// Purpose: the parts of warp, block and launch that only cold code touches.
// Contract: for code of the base instruction set; uses the standard library freely.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/simt/check/finding_log.h"
#include "harness/simt/check/global_race.h"
#include "harness/simt/device.h"
#include "harness/simt/exec/async_copy.h"
#include "harness/simt/exec/stream_race.h"
#include "harness/simt/exec/sync_map.h"
#include "harness/simt/exec/warp.h"
#include "harness/simt/memory/address_space.h"

namespace kv::simt {

/// Where undefined data entered the registers.
struct Origin {
  const ptx::Instruction* load = nullptr;  // null: a register never written
  uint64_t address = 0;
  uint8_t space = 0;
  const char* why = nullptr;  // instead of a load
};

/// Undefined bits of a warp's registers; slot_tainted is empty until the first undefined value.
struct TaintFile {
  std::vector<uint32_t> bits;  // as the register file, 1 = undefined
  std::vector<uint32_t> predicates;
  std::vector<uint8_t> slot_tainted;  // by slot; a wide register's flag is at its first slot
  std::vector<Origin> slot_origin, predicate_origin;
  void forget() { slot_tainted.clear(); }  // and keep the memory
};

struct WarpCold {
  TaintFile taint;
  std::vector<CopyBatch> copies;
};

struct Barrier {
  uint32_t arrived = 0;    // warps that wait
  uint32_t signalled = 0;  // warps that arrived without waiting
  uint32_t threads = 0;    // counted so far
  uint32_t expected = 0;   // threads; 0: the whole block
  bool used = false;
  uint32_t joined[32] = {};
  uint32_t reduce_count = 0, reduce_lanes = 0;  // of barrier.red: true, voting
};

enum class WarpState : uint8_t { kReady, kWaiting, kDone };

/// A place for a resident block: its memory is kept from block to block and launch to launch.
struct BlockCold {
  Barrier barriers[16];
  uint32_t all = 0, done = 0;  // warps, as masks
  std::vector<Warp> warps;
  std::vector<WarpCold> warp_cold;
  std::vector<WarpState> state;
  std::vector<uint32_t> writers, readers;
  std::vector<SharedChunk> chunks;
  std::unique_ptr<uint8_t[]> memory;  // registers, shared memory, its bits, local memory
  uint64_t memory_bytes = 0;
  uint32_t shared_capacity = 0;
  std::vector<uint32_t> predicates;
  uint32_t clock = 1;         // the next clock that no warp of this place has used
  uint64_t prepared_for = 0;  // launch whose constants the registers hold
};

/// An undefined value that perhaps is the effect of a race: filed at the end of the launch unless
/// the race is found where the value was loaded.
struct PendingFinding {
  kv_simt_finding finding = {};
  uint64_t site = 0, repeats = 0;
  uint64_t place = 0;  // see race_place
};

/// Bytes of memory, each counted once.
class ByteSet {
 public:
  /// Number of those that were not in the set.
  uint64_t add(uint64_t address, uint32_t bytes);

 private:
  std::unordered_map<uint64_t, uint64_t> words_;  // by address / 64; never iterated
};

struct LaunchCold {
  Program* program = nullptr;
  uint64_t program_id = 0;
  FindingLog* log = nullptr;
  AddressSpace* space = nullptr;
  kv_simt_config config = {};
  std::optional<std::chrono::steady_clock::time_point> deadline;
  uint64_t number = 0;
  uint64_t unique = 0;                // never used twice, not even after reset
  uint32_t clock_max = 0;             // the highest clock of a block so far
  uint64_t printed = 0;               // bytes that vprintf made
  uint64_t workspace = 0;             // of grid-wide barriers, zeroed
  ByteSet bytes_read, bytes_written;  // of global memory, where that is collected
  uint64_t* executions = nullptr;     // of probes, by number of the instruction
  uint8_t* edges = nullptr;
  uint64_t edge_count = 0;
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  SyncMap sync;
  std::vector<PendingFinding> pending;
  std::set<uint64_t> raced;            // places where a race was found
  std::vector<TrackedWork> unordered;  // older work that nothing orders before the launch
};

/// Number of `i` in clean code.
uint32_t pc_of(const Warp& w, const Ins* i);
const Ins* at(const Warp& w, uint32_t pc);
inline const Program& program_of(const Warp& w) { return *w.launch->cold->program; }
inline const Meta& meta_of(const Warp& w, const Ins* i) { return program_of(w).meta[i->meta]; }
inline bool tainting(const Warp& w) { return w.code != w.clean_code; }

}  // namespace kv::simt
