// Purpose: lengths by their relation to something: a page, a tile of 64 keys, another length.
// Contract: results lie in [1, most] for most >= 1.
#pragma once

#include <cstdint>

#include "harness/gen/choice_source.h"

namespace kv {

/// Small, or a multiple of a page or tile, one less or one more, or anything.
uint64_t draw_length(ChoiceSource& choices, uint64_t page_slots, uint64_t most);

/// Part of `whole`: all of it, one, all but one, up to the next page edge, or anything.
uint64_t draw_part(ChoiceSource& choices, uint64_t page_slots, uint64_t whole);

}  // namespace kv
