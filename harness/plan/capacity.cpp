#include "harness/plan/capacity.h"

#include "harness/core/check.h"

namespace kv {

uint64_t largest_batch(const CacheSize& size, const DeviceMemory& memory, uint64_t context) {
  KV_CHECK(context >= 1, "a request of no tokens takes no memory");
  return memory.cache_bytes / size.request_bytes(context);
}

uint64_t largest_context(const CacheSize& size, const DeviceMemory& memory, uint64_t batch,
                         uint64_t context_max) {
  KV_CHECK(batch >= 1, "no requests have no context");
  const uint64_t share = memory.cache_bytes / batch;
  uint64_t fits = 0, beyond = context_max + 1;  // request_bytes never falls as a request grows
  while (beyond - fits > 1) {
    const uint64_t middle = fits + (beyond - fits) / 2;
    (size.request_bytes(middle) <= share ? fits : beyond) = middle;
  }
  return fits;
}

std::vector<CapacityPoint> capacity_curve(const CacheSize& size, const DeviceMemory& memory,
                                          uint64_t context_max) {
  std::vector<CapacityPoint> curve;
  for (uint64_t context = 1024; context < context_max; context *= 2) {
    curve.push_back({context, largest_batch(size, memory, context)});
  }
  curve.push_back({context_max, largest_batch(size, memory, context_max)});
  return curve;
}

}  // namespace kv
