// Purpose: registers that a move connects share a place, and the move goes.
// Contract: two registers become one where neither is written while the value of the other is still
// needed, the move between them apart. Compilers leave such moves where paths meet and at the end
// of loops. What stays in the place of a move does nothing but count. Undefined bits and where they
// came from belong to the place, so they go along. Constants, special registers, registers of the
// prologue and those that may be read before they are written keep places of their own.
// Example: coalesce_moves(lowered, file.live_at_entry);
#pragma once

#include <cstdint>
#include <vector>

#include "harness/simt/exec/lower/lower.h"

namespace kv::simt {

void coalesce_moves(Lowered& lowered, const std::vector<uint32_t>& live_at_entry);

}  // namespace kv::simt
