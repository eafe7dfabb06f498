// Purpose: every check of arguments, in one place, before anything is launched.
// Contract: no device work and no reads of device memory. A refusal names the tensor, what was
// expected and what came.
#pragma once

#include "kvattn/attention.h"

namespace kvattn {

/// Size of a split of a decode query's slots: long enough to be worth its merge, and fixed, since a
/// request's bits depend on it.
constexpr uint32_t kSplitSlots = 256;

Status check_batch(const AttentionShape& shape, const BatchDescription& batch);
Status check_append(const AppendCall& call, const AttentionShape& shape);
Status check_merge(const MergeCall& call, const AttentionShape& shape);
Status check_attend(const AttendCall& call, const Plan& plan, const AttentionShape& shape);

}  // namespace kvattn
