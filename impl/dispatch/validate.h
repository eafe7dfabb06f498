// Purpose: every check of arguments, in one place, before anything is launched.
// Contract: no device work and no reads of device memory. A refusal names the tensor, what was
// expected and what came.
#pragma once

#include "kvattn/attention.h"

namespace kvattn {

/// Size of a split of a decode query's slots: fixed, since a request's bits depend on it, and so
/// long that what each split reads again (queries, lengths) stays below 2 % of K and V up to eight
/// query heads for each KV head (bench/README.md).
constexpr uint32_t kSplitSlots = 512;

Status check_batch(const AttentionShape& shape, const BatchDescription& batch);
Status check_append(const AppendCall& call, const AttentionShape& shape);
Status check_merge(const MergeCall& call, const AttentionShape& shape);
Status check_attend(const AttendCall& call, const Plan& plan, const AttentionShape& shape);

}  // namespace kvattn
