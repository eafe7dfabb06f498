#include "harness/simt/memory/bits.h"

#include <algorithm>
#include <cstring>

namespace kv::simt::bits {
namespace {

constexpr uint64_t low_mask(uint32_t count) {
  return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

/// Sets the range to all ones (`fill` 0xff) or all zeros (0).
void assign(uint8_t* array, uint64_t bit, uint64_t count, uint8_t fill) {
  if (count == 0) return;
  uint64_t first = bit >> 3;
  const uint64_t last = (bit + count - 1) >> 3;
  const uint8_t head = uint8_t(0xff << (bit & 7));
  const uint8_t tail = uint8_t(0xff >> (7 - ((bit + count - 1) & 7)));
  const auto blend = [&](uint64_t index, uint8_t mask) {
    array[index] = uint8_t((array[index] & ~mask) | (fill & mask));
  };
  if (first == last) return blend(first, head & tail);
  blend(first, head);
  ++first;
  std::memset(array + first, fill, last - first);
  blend(last, tail);
}

}  // namespace

void set(uint8_t* array, uint64_t bit, uint64_t count) { assign(array, bit, count, 0xff); }
void clear(uint8_t* array, uint64_t bit, uint64_t count) { assign(array, bit, count, 0); }

uint64_t get(const uint8_t* array, uint64_t bit, uint32_t count) {
  const uint32_t shift = bit & 7;
  const uint32_t bytes = (shift + count + 7) >> 3;  // at most 9
  uint64_t low = 0;
  std::memcpy(&low, array + (bit >> 3), std::min<uint32_t>(bytes, 8));
  uint64_t value = low >> shift;
  if (bytes == 9) value |= uint64_t{array[(bit >> 3) + 8]} << (64 - shift);
  return value & low_mask(count);
}

void put(uint8_t* array, uint64_t bit, uint32_t count, uint64_t value) {
  for (uint32_t done = 0; done < count;) {
    const uint32_t shift = (bit + done) & 7;
    const uint32_t part = std::min(8 - shift, count - done);
    uint8_t& byte = array[(bit + done) >> 3];
    const uint8_t mask = uint8_t(low_mask(part) << shift);
    byte = uint8_t((byte & ~mask) | ((value >> done << shift) & mask));
    done += part;
  }
}

namespace {

/// Index of the first bit that differs from those of `same`, all ones or all zeros.
uint64_t first_other(const uint8_t* array, uint64_t bit, uint64_t count, uint64_t same) {
  for (uint64_t done = 0; done < count;) {
    const uint32_t part = uint32_t(std::min<uint64_t>(64, count - done));
    const uint64_t others = (get(array, bit + done, part) ^ same) & low_mask(part);
    if (others) return done + uint64_t(__builtin_ctzll(others));
    done += part;
  }
  return count;
}

}  // namespace

uint64_t first_clear(const uint8_t* array, uint64_t bit, uint64_t count) {
  return first_other(array, bit, count, ~uint64_t{0});
}

uint64_t first_set(const uint8_t* array, uint64_t bit, uint64_t count) {
  return first_other(array, bit, count, 0);
}

bool all(const uint8_t* array, uint64_t bit, uint64_t count) {
  return first_clear(array, bit, count) == count;
}

void copy(uint8_t* to, uint64_t to_bit, const uint8_t* from, uint64_t from_bit, uint64_t count) {
  const bool down = to > from || (to == from && to_bit > from_bit);  // overlapping, as memmove
  for (uint64_t done = 0; done < count;) {
    const uint32_t part = uint32_t(std::min<uint64_t>(32, count - done));
    const uint64_t at = down ? count - done - part : done;
    put(to, to_bit + at, part, get(from, from_bit + at, part));
    done += part;
  }
}

}  // namespace kv::simt::bits
