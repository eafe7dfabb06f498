// Purpose: what several properties ask of a case: its end state and the stored bytes of a request.
// Contract: pure functions; the case must be lawful.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/case/case.h"
#include "harness/case/timeline.h"

namespace kv::props {

/// The timeline after all operations. It refers to `c`.
Timeline at_end(const Case& c);

/// K and V of every slot of the request, all layers and heads, one after the other.
std::vector<std::byte> stored_bytes(const Case& c, const Sequence& sequence);

}  // namespace kv::props
