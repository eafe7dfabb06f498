// Purpose: may an explanation of this case be believed?
// Contract: check_modelled() refuses, with one sentence, what a Reading does not hold: such a case
// would be read wrongly even without a fault. honest_defect() holds the scene against the judge,
// who computes from the case alone: what the honest reading gives must conform in every row of the
// step. Returns the judge's objection, or "".
// Example: if (auto defect = honest_defect(c, seen, 3, scene); !defect.empty()) return refuse;
#pragma once

#include <string>

#include "harness/core/result.h"
#include "harness/explain/reading.h"

namespace kv {

Result<void> check_modelled(const Case& c);

/// `op_index` is the scene's.
std::string honest_defect(const Case& c, const Observation& seen, uint32_t op_index,
                          const Scene& scene);

}  // namespace kv
