// Purpose: further cases like one, on which hypotheses that it cannot tell apart may disagree.
// Contract: a pure function of (case, index): the same operations, types, head dimension, group and
// kind of rows (one query stays one query), with random normal data, other lengths, more KV heads,
// other pages, and now and then a wider window. Lawful, or nothing.
// Example: if (auto c = varied(from, 3)) observe(*c);
#pragma once

#include <optional>

#include "harness/case/case.h"

namespace kv {

std::optional<Case> varied(const Case& from, uint32_t index);

}  // namespace kv
