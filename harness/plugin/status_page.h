// Purpose: where a worker is, readable by its parent even when the worker is dead or stuck.
// Contract: one page of memory shared by both. The worker writes, the parent reads; a hostile
// worker may write anything, so the parent bounds what it reads (phase_name does).
#pragma once

#include <atomic>
#include <cstdint>

namespace kv {

enum class Phase : uint32_t {
  kStarting,
  kLoading,
  kIdle,
  kPreparing,
  kSupports,
  kPlan,
  kAppend,
  kAttend,
  kSynchronising,
  kReadingBack,
  kMerge,
};

/// "attend", or "an unknown place" for a value that is none of them.
const char* phase_name(uint32_t phase);

struct StatusPage {
  std::atomic<uint64_t> progress = 0;  // grows with every step forward
  std::atomic<uint32_t> phase = 0;     // a Phase
  std::atomic<uint32_t> op_index = 0;
  std::atomic<uint32_t> layer = 0;

  void enter(Phase now) {
    phase.store(static_cast<uint32_t>(now), std::memory_order_relaxed);
    progress.fetch_add(1, std::memory_order_relaxed);
  }
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace kv
