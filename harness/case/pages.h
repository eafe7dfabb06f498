// Purpose: how many pages a number of slots takes.
// Contract: the last page may be partly used; page_slots is at least 1.
// Example:  pages_for(17, 16) == 2
#pragma once

#include <cstdint>

namespace kv {

constexpr uint64_t pages_for(uint64_t slots, uint64_t page_slots) {
  return (slots + page_slots - 1) / page_slots;
}

}  // namespace kv
