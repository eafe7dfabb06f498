// Purpose: the dispatch table: the name of every kernel variant, when it may run, what it launches
// and what it declares about its algorithm.
// Contract: data only. The variant of a batch is the first one in the table that accepts it and is
// not `forced_only`. A request's kernel depends on the request alone, so that its bits do not depend
// on its company.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "impl/kernels/launch.h"
#include "kvattn/attention.h"

namespace kvattn {

/// One kernel over the requests whose query length lies in [min, max].
struct LaunchRule {
  AttendLaunchers::Launch AttendLaunchers::* kernel;
  int32_t query_length_min, query_length_max;
};

struct Variant {
  const char* name;
  const char* accepts;  // in words, for messages
  int32_t query_length_min, query_length_max;  // of every request
  std::array<LaunchRule, 2> launches;          // an empty one has kernel nullptr
  uint32_t tile_slots, ascending, splits;      // see Plan
};

std::span<const Variant> variants();

}  // namespace kvattn
