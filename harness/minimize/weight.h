// Purpose: which of two cases is the simpler one.
// Contract: a total order over cases that every accepted candidate must descend, so that no two
// passes can undo each other for ever. What a reader has to follow comes first: operations, rows,
// requests; then heads, dimensions and lengths; then settings and values; then the bytes of the
// file.
// Example: if (weight_of(candidate) < weight_of(best)) ...
#pragma once

#include <array>
#include <cstdint>

#include "harness/case/case.h"

namespace kv {

using Weight = std::array<uint64_t, 12>;

Weight weight_of(const Case& c);

/// Smaller is simpler: designs of small integers first, random numbers last.
uint32_t design_rank(Design design);

}  // namespace kv
