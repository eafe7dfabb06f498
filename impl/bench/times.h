// Purpose: microseconds of steps on a device, beside what the device has been measured to do.
// Contract: prints one line for each step to stdout; fails as device_data.h says.
#pragma once

#include <span>

#include "impl/bench/workloads.h"

namespace kvattn::bench {

/// How much is run. `kTrial` is for tests of this program: its times mean nothing.
struct Extent {
  uint64_t copy_bytes;     // of the copy that measures the memory
  uint64_t rotated_bytes;  // K and V of all copies of a step: more than any cache of a device
  int matrix_size;         // of the product that measures the tensor cores: rows and columns
  int runs, warm_ups;
};
inline constexpr Extent kWhole = {uint64_t{1} << 30, uint64_t{512} << 20, 8192, 30, 3};
inline constexpr Extent kTrial = {uint64_t{1} << 20, uint64_t{1} << 20, 64, 3, 1};

void print_times(std::span<const Workload* const> steps, const Extent& extent);

}  // namespace kvattn::bench
