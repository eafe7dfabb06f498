// Purpose: are the fields of a case inside their ranges, one by one and together?
// Contract: what parse_case accepts passes; a case built in code is checked by the same rules. The
// meaning of the operations is Timeline's business (operations.h).
#pragma once

#include "harness/case/case.h"
#include "harness/core/result.h"

namespace kv {

/// An error names the JSON path: "shape.layers: expected ..., got ...".
Result<void> check_case(const Case& c);
/// Of a case for the engine level: that it asks for nothing of which no engine is told.
Result<void> check_history(const Case& c);

}  // namespace kv
