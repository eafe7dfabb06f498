// Purpose: what fits into a device's memory: how many requests of a context, how long a context.
// Contract: exact; a request counts with its whole pages at its longest. 0: not even one fits.
// Example:  largest_batch(size, {.cache_bytes = 40ull << 30}, 8192);
#pragma once

#include <cstdint>
#include <vector>

#include "harness/plan/cache_size.h"

namespace kv {

struct DeviceMemory {
  uint64_t cache_bytes = 0;  // of one rank, after weights and whatever else lives there
};

uint64_t largest_batch(const CacheSize& size, const DeviceMemory& memory, uint64_t context);

/// The longest context, at most `context_max`, that `batch` requests can have at once.
uint64_t largest_context(const CacheSize& size, const DeviceMemory& memory, uint64_t batch,
                         uint64_t context_max);

struct CapacityPoint {
  uint64_t context = 0, batch = 0;
};
/// Contexts 1,024, 2,048, ... and `context_max` itself, each with its largest batch.
std::vector<CapacityPoint> capacity_curve(const CacheSize& size, const DeviceMemory& memory,
                                          uint64_t context_max);

}  // namespace kv
