// Purpose: reads the output of a census (Design::kCensus: q = 0, V codes the position) back as the
// set of keys that was visible.
// Contract: uses the definition of the mask over slots (case/timeline.h) and integers, nothing of
// the reference: O times the number of visible keys must be the sum of their codes. Says nothing
// of heads with sinks or ALiBi, whose weights are not equal, nor of more than kKeysMax keys, which
// the output's format cannot count.
// Example: if (auto failure = wrong_census({c, ops})) ...
#pragma once

#include <optional>

#include "harness/relation/agreement.h"

namespace kv {

std::optional<Failure> wrong_census(const Seen& seen);

}  // namespace kv
