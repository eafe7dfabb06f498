// Purpose: rounding to integers and of integers, scalar.
// Contract: exact in every mode; IEEE 754-2019 sections 5.4.1 and 5.9.
#pragma once

#include "harness/simt/exec/math/float.h"

namespace kv::simt::KV_ISA {

KV_INLINE double to_integral_value(double x, Round mode) {
  const double size = x < 0 ? -x : x;
  if (!(size < 4503599627370496.0)) return x;  // already integral, infinite or NaN
  const double magic = 6755399441055744.0;
  double r = (x + magic) - magic;
  const bool down = mode == Round::kDown || (mode == Round::kZero && x > 0);
  const bool up = mode == Round::kUp || (mode == Round::kZero && x < 0);
  if (down && r > x) r -= 1;
  if (up && r < x) r += 1;
  return r == 0 ? double_of(bits_of(x) & 0x8000000000000000) : r;  // the zero keeps its sign
}

KV_INLINE double integer_to_double(__int128 v, Round mode) {
  const bool negative = v < 0;
  unsigned __int128 m = negative ? (unsigned __int128)(-v) : (unsigned __int128)(v);
  int shift = 0;
  unsigned __int128 rest = 0, half = 1;
  while (m >> shift >> 53) ++shift;
  if (shift) {
    rest = m & (((unsigned __int128)1 << shift) - 1);
    half = (unsigned __int128)1 << (shift - 1);
    m >>= shift;
  }
  bool up = false;
  if (mode == Round::kNearest) up = shift && (rest > half || (rest == half && (m & 1)));
  if (mode == Round::kUp) up = rest != 0 && !negative;
  if (mode == Round::kDown) up = rest != 0 && negative;
  double x = double(uint64_t(m) + (up ? 1 : 0));
  for (; shift > 0; --shift) x *= 2;
  return negative ? -x : x;
}

KV_INLINE double e4m3_number(uint32_t b) {
  const uint32_t m = b & 0x7f;
  if (m == 0x7f) return double_of(kNanBits64);
  const double x = m >> 3 ? double(8 + (m & 7)) * double_of(uint64_t((m >> 3) - 10 + 1023) << 52)
                          : double(m) * 0x1p-9;
  return b & 0x80 ? -x : x;
}

}  // namespace kv::simt::KV_ISA
