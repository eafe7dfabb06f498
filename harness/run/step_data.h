// Purpose: the bytes of Q, K and V that one layer of a step is given.
// Contract: dense [tokens][heads][head_dim], tokens in batch order; a pure function of the case.
// Example: fill_step_tensor(c, timeline, step, {.layer = 0, .role = TensorRole::kKey}, k);
#pragma once

#include <cstddef>
#include <vector>

#include "harness/case/data.h"
#include "harness/case/timeline.h"

namespace kv {

struct LayerRole {
  uint32_t layer = 0;
  TensorRole role = TensorRole::kKey;
};

/// kKey, kValue: the appended slots of every row. kQuery: the query rows. Resizes `bytes`.
void fill_step_tensor(const Case& c, const Timeline& timeline, const PlannedStep& step,
                      LayerRole what, std::vector<std::byte>& bytes);

}  // namespace kv
