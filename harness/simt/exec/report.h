// Purpose: turns what the executor saw into a finding.
// Contract: `fresh` counts a repeat and returns false where the same kind was already found at the
// same instruction; only then is the message worth composing.
// Example:
//   if (fresh(w, i, KV_SIMT_KIND_RACE)) file(w, i, {.kind = ..., .lane = 3, .message = "..."});
#pragma once

#include <string>

#include "harness/simt/exec/state.h"

namespace kv::simt {

struct Report {
  uint32_t kind = 0;
  uint32_t lane = 0;
  uint64_t address = 0;
  uint32_t bytes = 0;
  ptx::Space space = ptx::Space::kGeneric;
  std::string message;
};

/// Of a kernel that cannot be decoded, because of `culprit` if that is known.
kv_simt_finding unsupported_finding(const std::string& kernel, const ptx::Instruction* culprit,
                                    const std::string& message);

bool fresh(const Warp& w, const Ins* i, uint32_t kind);
void file(const Warp& w, const Ins* i, const Report& report);

/// Where data lies, to the sixteen bytes; shared memory of each block apart.
uint64_t race_place(const Warp& w, ptx::Space space, uint64_t address);
/// As fresh and file, for a finding that a race at `place` would explain.
bool fresh_pending(const Warp& w, const Ins* i, uint32_t kind);
void file_unless_raced(const Warp& w, const Ins* i, const Report& report, uint64_t place);
/// At the end of the launch.
void file_pending(LaunchCold& cold);

/// "thread (1,0,0) of block (0,2,0)"
std::string thread_name(const Warp& w, uint32_t lane);
/// "stencil.cu:12 (inlined at main.cu:30)", or "PTX line 7"
std::string place_name(const ptx::Instruction& source);
/// "24 bytes after allocation 3 (4096 bytes at 0x2000...)"
std::string extent_name(AddressSpace& space, uint64_t address);
std::string hex(uint64_t value);

}  // namespace kv::simt
