// Purpose: how the slots of queries are divided between blocks.
// Contract: pure. Outside throughput mode a division depends on the sizes of splits only, so that a
// request's bits do not depend on its company.
#pragma once

#include "impl/dispatch/variants.h"

namespace kvattn {

/// Kernels that divide the slots of every query; partial results are of a token each.
bool divides_tokens(Kernel kernel);
bool is_divided(Kernel kernel);

/// Sets what the plan says of splits, for a kernel that is_divided().
void divide(Plan& plan, const BatchDescription& batch, int64_t kv_heads, Kernel kernel);

}  // namespace kvattn
