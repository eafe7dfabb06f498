// Purpose: integer types of PTX as values, for the definitions.
// Contract: 128 bits hold every sum and every product of two 64-bit operands modulo 2^128, so one
// formula serves all widths. Example: Integer("s16").clamp(a + b)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kv::simt::semantics {

using Wide = __int128;

struct Integer {
  int bits;
  bool is_signed;

  explicit Integer(std::string_view name)
      : bits(std::stoi(std::string(name.substr(1)))), is_signed(name[0] == 's') {}

  uint64_t mask() const { return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }
  /// The number that the low bits of `raw` stand for.
  Wide value(uint64_t raw) const {
    raw &= mask();
    const bool negative = is_signed && (raw >> (bits - 1) & 1);
    return negative ? Wide(raw) - (Wide(1) << bits) : Wide(raw);
  }
  uint64_t wrap(Wide number) const { return uint64_t(number) & mask(); }
  Wide least() const { return is_signed ? -(Wide(1) << (bits - 1)) : 0; }
  Wide most() const { return (Wide(1) << (is_signed ? bits - 1 : bits)) - 1; }
  uint64_t clamp(Wide number) const {
    return wrap(number < least() ? least() : number > most() ? most() : number);
  }
};

}  // namespace kv::simt::semantics
