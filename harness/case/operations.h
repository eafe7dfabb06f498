// Purpose: is every operation of a case lawful where it stands?
// Contract: walks the operations with counts only (no token is hashed), so a hostile case costs
// little. After an ok, Timeline::apply cannot fail. Unlawful operations are bad input; lawful ones
// that the kernel level does not offer yet are `unsupported`.
#pragma once

#include "harness/case/case.h"
#include "harness/core/result.h"

namespace kv {

/// The case's ranges must have been checked (check_case).
Result<void> check_operations(const Case& c);

/// Refuses as unsupported what neither Timeline nor the data function gives a meaning yet:
/// 8-bit queries and outputs, side-cars, overcommit.
Result<void> check_kernel_level(const Case& c);

}  // namespace kv
