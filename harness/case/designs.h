// Purpose: the input designs of docs/numerics.md §6 as formulas for one row.
// Contract: pure functions of the token's identity; integer arithmetic only, so the same on every
// machine. Every element keeps inside FixedRow's range.
#pragma once

#include <cstdint>

#include "harness/case/case.h"
#include "harness/case/data.h"
#include "harness/case/fixed_row.h"

namespace kv {

/// Fills row.fixed and row.exponent (row.size is set) for the case's design.
void design_row(const Case& c, const RowAddress& where, const Slot& slot, FixedRow& row);

/// What PAD slots hold in K and V: if a row sees it, K wins every second softmax and V shows.
void canary_row(const RowAddress& where, const Slot& slot, FixedRow& row);

}  // namespace kv
