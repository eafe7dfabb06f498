// Purpose: the dispatch table: the name of every kernel variant, when it may run, what it launches
// and what it declares about its algorithm.
// Contract: data only. A batch runs the first variant that is chosen for it, or the one that its
// caller forces. Which kernel a request gets depends on the request alone, so that its bits do not
// depend on its company.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "impl/kernels/launch.h"
#include "kvattn/attention.h"

namespace kvattn {

/// Numbers of queries of a request; requests without queries fit every range.
struct QueryRange {
  int32_t min, max;
  bool has(int32_t length) const { return length >= min && length <= max; }
};

using Kernel = AttendLaunchers::Launch AttendLaunchers::*;

/// One kernel over the requests in a range. kernel nullptr: no launch.
struct LaunchRule {
  Kernel kernel;
  QueryRange queries;
};

enum class Types { kAny, k16Bit, k32Bit };
/// Which batches a variant is chosen for: all but batch-invariant ones, those alone, or in
/// throughput mode those whose heads share K and V, or whose cache holds codes.
enum class ChosenIn { kOrdinary, kInvariant, kThroughput };
/// kLatent: rows of K and V that only a kernel for latent caches has registers for.
enum class Dims { kOrdinary, kLatent };

struct Variant {
  const char* name;
  const char* accepts_text;  // for messages
  Types types;
  QueryRange chosen_for;  // runs unforced when every request fits
  QueryRange accepts;     // runs forced when every request fits
  std::array<LaunchRule, 2> launches;
  ChosenIn chosen_in = ChosenIn::kOrdinary;
  Dims dims = Dims::kOrdinary;
};

std::span<const Variant> variants();

/// What a kernel declares about its algorithm.
struct KernelProfile {
  uint32_t tile_slots;
  bool is_ascending, uses_tensor_cores;
  uint32_t splits;
};
KernelProfile kernel_profile(Kernel kernel, const AttentionShape& shape);

}  // namespace kvattn
