// Purpose: says when this process computes otherwise than the bounds assume.
// Contract: "" when doubles are IEEE, rounded to nearest, neither flushed nor contracted nor
// reassociated; else one sentence that names the defect. Costs a few nanoseconds, so whoever draws
// a verdict asks again each time: the code under check, or a library compiled with fast-math,
// may have changed MXCSR since. Source: docs/numerics.md §8.5.
#pragma once

#include <string_view>

namespace kv::reference {

std::string_view host_arithmetic_defect();

}  // namespace kv::reference
