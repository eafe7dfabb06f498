// Purpose: one bit for each byte of some memory, in ranges of any alignment.
// Contract: plain functions over a caller's array; bit k of byte k / 8 belongs to byte k of memory.
// `bit` and `count` are in bits, that is in bytes of the memory described.
#pragma once

#include <cstdint>

namespace kv::simt::bits {

void set(uint8_t* array, uint64_t bit, uint64_t count);
void clear(uint8_t* array, uint64_t bit, uint64_t count);
bool all(const uint8_t* array, uint64_t bit, uint64_t count);
/// Index, relative to `bit`, of the first clear bit; `count` if there is none.
uint64_t first_clear(const uint8_t* array, uint64_t bit, uint64_t count);
/// The same, of the first set bit.
uint64_t first_set(const uint8_t* array, uint64_t bit, uint64_t count);
void copy(uint8_t* to, uint64_t to_bit, const uint8_t* from, uint64_t from_bit, uint64_t count);
/// Up to 64 bits, the first in bit 0.
uint64_t get(const uint8_t* array, uint64_t bit, uint32_t count);
void put(uint8_t* array, uint64_t bit, uint32_t count, uint64_t value);

}  // namespace kv::simt::bits
