// Purpose: the first cases of a campaign: few, and between them every required condition and pair.
// Contract: a pure function of seed and options. Cases are chosen greedily among the first drawn
// ones (more are drawn as long as something is missing, up to kCandidatesMax), so that they are
// cases as the generator draws them; what no candidate has is left out, and the campaign's own
// count says so.
// Example:  const std::vector<uint64_t> first = covering_array(seed, {});
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "harness/gen/draw.h"
#include "harness/gen/must_hit.h"

namespace kv {

/// Indices to draw with PhiloxSource(seed, index), best first: between them what `met` has not.
/// Those in `without` are not chosen.
/// `met` null: nothing, of what the options offer.
std::vector<uint64_t> covering_array(uint64_t seed, const DrawOptions& options,
                                     const MustHit* met = nullptr,
                                     const std::set<uint64_t>& without = {});

}  // namespace kv
