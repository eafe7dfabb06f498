// Purpose: how each twin follows from what happened.
// Contract: see TwinRelation::derive; `twin.c` is the case on entry, and keeps exec.relation.
#pragma once

#include "harness/history/twin.h"

namespace kv {

// twin_requests.cpp
bool twin_alone(std::span<const Happened> happened, uint64_t seed, Twin& twin);
bool twin_without_cancelled(std::span<const Happened> happened, uint64_t seed, Twin& twin);
bool twin_beams_renamed(std::span<const Happened> happened, uint64_t seed, Twin& twin);

// twin_circumstances.cpp
bool twin_never_speculated(std::span<const Happened> happened, uint64_t seed, Twin& twin);
bool twin_cold(std::span<const Happened> happened, uint64_t seed, Twin& twin);
bool twin_never_preempted(std::span<const Happened> happened, uint64_t seed, Twin& twin);
bool twin_recomputed(std::span<const Happened> happened, uint64_t seed, Twin& twin);

/// As it was.
TwinOp same(const Happened& happened);
/// A request that begins with tokens and computes them, whoever it had them from.
TwinOp admission_of(const call::Admit& content, uint32_t op_index);

}  // namespace kv
