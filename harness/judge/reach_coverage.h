// Purpose: an engineered case, changed until the loss of any key that is seen would be certified.
// Contract: a pure function of case and options. What may change: rows query with all their slots
// (where the case asks for fewer), then the design and the seed of the data; operations, shapes,
// masks and pools stay. Cases with overrides or a side-car keep their data and get rows alone.
// Stops at the first case that is complete(); else the best one found is given, and its coverage
// says so. Example:
//   KV_ASSIGN_OR_RETURN(ReachedCase r, reach_coverage(c, {}));  if (r.coverage.complete()) ...
#pragma once

#include "harness/judge/case_coverage.h"

namespace kv {

struct ReachedCase {
  Case c;
  CaseCoverage coverage;
  uint64_t looked_at = 0;  // candidates
};

struct ReachOptions {
  CoverageOptions coverage;
  uint32_t seeds = 4;  // tried for each design
};
Result<ReachedCase> reach_coverage(const Case& c, const ReachOptions& options);

/// Keys that some row sees, and of them those whose loss is certified; over all heads.
FaultCount keys_covered(const CaseCoverage& coverage);

}  // namespace kv
