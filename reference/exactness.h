// Purpose: certificates that a conforming kernel computes parts of a row without any rounding, so
// that the bound shrinks to the division and the output rounding (designs E1 and E3).
// Contract: computed from the row's own inputs, never from the name of a design.
//  - unit weights: every visible key either has products that are all zero, so that its score is
//    exactly 0 in any order and its weight ex2(0) = 1 before and after rounding, or weighs less
//    than 2^-60. The latter add less than twice their weight: where their values are not larger
//    than others by 2^33, they are below half a unit of any accumulator next to sums on the grid of
//    those, and where they stand alone they are themselves.
//  - row_sum: the sum of the ones is exact.
//  - column: all products are multiples of one power of two and the sum of their magnitudes fits
//    the accumulator, so that every partial sum is exact in any order, and what is left out cannot
//    reach into them.
// Source: docs/numerics.md §2.3 (order-free exact case), §6.1 E1, E3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/profile.h"

namespace kv::reference {

inline constexpr double kNegligibleWeight = 0x1p-60;

/// What of a row bears on the certificate.
struct UnitRow {
  enum Kind : uint8_t { kZeroScore, kNegligible, kOther };
  bool biased = false;      // bias, sink, softcap or scaled K/V: no certificate
  std::vector<Kind> kinds;  // of each visible key
};

struct UnitWeights {
  bool certified = false, row_sum = false;
  std::vector<uint8_t> negligible;  // [n], 1: weighs less than kNegligibleWeight
};
UnitWeights unit_weights(const Profile& profile, const UnitRow& row);

/// One column of the visible V rows, `stride` apart; keys marked in `skip` are left out.
struct Column {
  std::span<const double> values;
  size_t stride = 1;
  std::span<const uint8_t> skip;  // [n]
  double floor = 0;               // the steps may be aligned to this, if no product is larger
};
bool column_is_exact(const Accumulation& accumulation, const Column& column);
/// The same for an accumulator of `bits` significant bits, 53 for double: sums made here.
bool column_fits(int bits, const Column& column);

}  // namespace kv::reference
