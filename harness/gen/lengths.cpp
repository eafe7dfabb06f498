#include "harness/gen/lengths.h"

#include <algorithm>

namespace kv {
namespace {

constexpr uint64_t kTileSlots = 64;

}  // namespace

uint64_t draw_length(ChoiceSource& choices, uint64_t page_slots, uint64_t most) {
  const uint64_t unit = choices.pick({uint64_t{1}, page_slots, kTileSlots, uint64_t{16}});
  const uint64_t multiple = unit * choices.between(1, unit == 1 ? 17 : 4);
  const uint64_t length = choices.pick(
      {multiple, multiple - 1, multiple + 1, choices.between(1, std::max<uint64_t>(most, 1))});
  return std::clamp<uint64_t>(length, 1, most);
}

uint64_t draw_part(ChoiceSource& choices, uint64_t page_slots, uint64_t whole) {
  const uint64_t part = choices.pick(
      {whole, uint64_t{1}, whole - 1, page_slots, page_slots + 1, choices.between(1, whole)});
  return std::clamp<uint64_t>(part, 1, whole);
}

}  // namespace kv
