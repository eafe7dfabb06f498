// Purpose: one lane's access to memory, checked in every way.
// Contract: for cold code. `resolve` reports and stops the warp (Stop::kFault) where the access
// must not be made; the other functions report and go on.
#pragma once

#include <optional>

#include "harness/simt/exec/state.h"
#include "harness/simt/exec/taint.h"

namespace kv::simt {

struct Target {
  ptx::Space space = ptx::Space::kGlobal;
  uint64_t address = 0;     // global address, or offset in the space
  uint8_t* data = nullptr;  // null for local memory, which is interleaved
  Extent* extent = nullptr;
};

struct Access {
  Warp& w;
  const Ins* i;
  ptx::Space space = ptx::Space::kGlobal;  // as the instruction says
  uint32_t lane = 0;
  uint32_t bytes = 0;
  uint32_t used = ~0u;  // bytes whose value matters
  bool write = false;
  bool read = false;
  bool strong = false;  // an atomic or the like: never races
};

/// What the access does, in a report.
inline const char* verb(const Access& a) {
  return a.read && a.write ? "updates" : a.write ? "writes" : "reads";
}

std::optional<Target> resolve(const Access& a, uint64_t address);
void read_bytes(const Access& a, const Target& t, uint8_t* out);
void write_bytes(const Access& a, const Target& t, const uint8_t* from);
/// Undefined bytes of the access that matter, one bit each.
uint32_t undefined_bytes(const Access& a, const Target& t);
void set_undefined_bytes(const Access& a, const Target& t, uint32_t undefined);
/// `value`: what is about to be written, to tell same-value writes apart; null for reads.
void check_race(const Access& a, const Target& t, const uint8_t* value);
/// Before an access to parts of chunks of shared memory.
void open_chunks(const Warp& w, uint64_t offset, uint32_t bytes);
/// A strong read takes over what writers of the address have published; a strong write publishes
/// what its warp and block have done and seen. Nothing happens for other accesses.
void acquire(const Access& a, const Target& t);
void release(const Access& a, const Target& t);
/// True, and reported, if the bytes read are the destination of an unfinished cp.async.
bool pending_copy(const Access& a, const Target& t);
void report_undefined_store(const Access& a, const Target& t, uint32_t bytes, const Origin& origin);
/// One bit for each byte to eight bits for each byte.
uint64_t spread(uint32_t bytes, uint32_t width);
inline uint32_t low_mask(uint32_t bytes) { return bytes >= 32 ? ~0u : (1u << bytes) - 1; }

}  // namespace kv::simt
