// Purpose: admission control: what is admitted at most, and what has to be.
// Contract: the worst case of a request is counted from both sides, since windows leave an engine a
// choice: at least what its last query sees in each group, at most all its slots. Active requests
// count. Nothing here reads a state of the engine.
// Example:  if (auto found = check_budget(model)) return found;
#pragma once

#include "harness/history/finding.h"
#include "harness/history/model.h"

namespace kv {

/// Pages that the worst cases of the active requests may take together.
uint64_t budget_of(const Pool& pool);

/// The worst cases of the active requests fit into overcommit times the pool.
MaybeFinding check_budget(const Model& model);

/// Whether one more active request with this worst case must find room: batch slots, requests and
/// pages are there, whatever the engine holds for the others. `is_new`: it does not exist yet.
bool must_have_room(const Model& model, uint64_t slots_max, bool is_new);

}  // namespace kv
