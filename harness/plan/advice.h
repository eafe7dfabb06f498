// Purpose: which settings to choose for a model, a workload and a device, and why.
// Contract: a pure function; each choice carries one reason with the numbers that decided it. The
// rules are simple thresholds, stated in advice.cpp beside their sources; they are advice for where
// to start measuring, not a measurement.
// Example:  for (const Advice& a : advise(model, size, workload)) print(a.what, a.choice,
// a.reason);
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/plan/cache_size.h"
#include "harness/trace/trace.h"

namespace kv {

struct Workload {
  uint64_t context = 0;                 // slots of one request, its longest
  uint64_t batch = 1;                   // requests at once
  uint64_t batch_limit = 1;             // the same, of the trace
  std::optional<uint64_t> cache_bytes;  // of one rank; nothing: unknown
  uint64_t weight_bytes = 0;            // of one rank; 0: unknown
  std::span<const TraceRequest> trace;  // may be empty
};

struct Advice {
  std::string what, choice, reason;
};

/// Kernel variant, page size, prefix cache, K/V dtype, speculation, in this order.
Result<std::vector<Advice>> advise(const KvModel& model, const CacheSize& size,
                                   const Workload& workload);

/// Blocks of the trace's prompts that repeat a known prefix, of all blocks.
struct PrefixShare {
  uint64_t repeated = 0, blocks = 0;
};
PrefixShare prefix_share(std::span<const TraceRequest> trace);

}  // namespace kv
