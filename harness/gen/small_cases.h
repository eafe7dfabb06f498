// Purpose: all small cases, for what random cases meet by luck: every block table of up to three
// pages out of four; every mask of up to 4 queries x 4 keys; every length up to a tile of 64 keys
// and one, with every number of queries up to a tile of 16 and one, and all; every kind of padding
// under every causality and position offset, with what depends on positions.
// Contract: draw_small() is a drawing like any other (lawful, total); with an Odometer it gives
// each small case once. Symmetries that a kernel could break are kept: pages are not renamed. One
// that none can is used: requests of a batch are independent, so one case holds 64 masks.
// Example:  Odometer choices;  do { run(draw_small(choices)); } while (choices.next());
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "harness/case/case.h"
#include "harness/gen/choice_source.h"

namespace kv {

enum class SmallFamily : uint8_t { kTables, kMasks, kLengths, kPaddings };
inline constexpr size_t kSmallFamilies = 4;
std::string_view small_family_name(SmallFamily family);

Case draw_small(ChoiceSource& choices);

/// How many cases each family has, by counting them.
std::array<uint64_t, kSmallFamilies> count_small_cases();

}  // namespace kv
