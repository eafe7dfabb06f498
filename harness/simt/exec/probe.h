// Purpose: instrumentation that decoding puts between the instructions of a kernel, on request.
// Contract: a program without probes has no trace of them. Each counts where it stands: executions
// of a PTX instruction by a warp, the two ways out of a conditional branch, or a digest of all
// values that instructions produce. The digest is a sum over events (thread, instruction, value),
// so it does not depend on the order in which warps run; a barrier or a fence is no event.
#pragma once

#include <cstdint>
#include <functional>

#include "harness/simt/exec/state.h"

namespace kv::simt {

/// What to put in, as bits.
namespace probe_bits {
inline constexpr uint32_t kExecutions = 1;  // of every instruction
inline constexpr uint32_t kWatched = 2;     // of the one watched instruction
inline constexpr uint32_t kEdges = 4;
inline constexpr uint32_t kDigest = 8;
inline constexpr uint32_t kMemory = 16;  // what accesses cost
}  // namespace probe_bits

struct ProbePlan {
  uint32_t bits = 0;
  const ptx::Instruction* watched = nullptr;
  uint64_t edge_base = 0;  // of this kernel's edges among the caller's counters
  std::function<uint64_t(const ptx::Instruction*)> number;  // within the module
};

/// Ins::imm is the number of the instruction; to LaunchCold::executions.
const Ins* probe_executions(Warp& w, const Ins* i);
const Ins* probe_watched(Warp& w, const Ins* i);
/// Ins::imm is the number of the edge not taken; the one taken follows. Without a guard: entered.
const Ins* probe_edges(Warp& w, const Ins* i);
/// After an instruction: its sources are the operands to digest, Ins::imm what else matters.
const Ins* probe_values(Warp& w, const Ins* i);
/// Before an access: the requests, sectors, bank conflicts and distinct bytes of one side of it.
/// r[0] and Ins::imm the address in Ins::mode, Ins::width bytes of a lane, Ins::count lanes,
/// Ins::space, Ins::extra an AccessKind; Ins::flags see below.
const Ins* probe_memory(Warp& w, const Ins* i);
namespace memory_probe_flags {
inline constexpr uint16_t kSize = 1;    // r[1] holds the bytes that the lane reads
inline constexpr uint16_t kIgnore = 2;  // nothing is read where predicate r[1] holds
}  // namespace memory_probe_flags
/// Before a branch or exit: the lanes that take it.
const Ins* probe_taken(Warp& w, const Ins* i);

}  // namespace kv::simt
