// Purpose: how wrong the elements around a divergence are: a picture of a failure, no verdict.
// Contract: ratios are |error| / bound under the weakest assumptions, by the double tier alone;
// what the judge certifies is the divergence. At most kErrorRowsMax rows and kErrorColumnsMax
// dimensions around the divergence, fewer where a row sees so many keys that the work would be
// unbounded. Nothing where the observation does not reach the step or is malformed, or where the
// divergence lies in a cascade beside the step. Example:
// ErrorMap map = error_map(c, observation, *verdict.divergence);
#pragma once

#include <vector>

#include "harness/case/case.h"
#include "harness/judge/verdict.h"
#include "harness/run/observation.h"

namespace kv {

inline constexpr size_t kErrorRowsMax = 48, kErrorColumnsMax = 128;
inline constexpr uint64_t kErrorWorkMax = uint64_t{1} << 26;  // multiply-adds

/// One query row of one head.
struct ErrorRow {
  uint32_t head = 0;
  int64_t query_slot = 0;
  bool here = false;           // the divergence lies in it
  std::vector<double> ratios;  // infinite for a NaN; empty where the contract fixes no values
};

struct ErrorMap {
  uint32_t first_dimension = 0;
  std::vector<ErrorRow> heads;    // the row of the divergence, for each query head
  std::vector<ErrorRow> queries;  // the head of the divergence, for each query row of its request
};

ErrorMap error_map(const Case& c, const Observation& observation, const Divergence& d);

}  // namespace kv
