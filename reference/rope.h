// Purpose: rotary position embedding of one row, and how far a conforming kernel's may be from it.
// Contract: pair i of the leading `dims` elements (i < dims / 2) is turned by the angle
//   position * theta^(-2 i / dims);  neox pairs (i, i + dims/2), interleaved pairs (2i, 2i + 1);
//   (a, b) becomes (a cos - b sin, b cos + a sin). The other elements stay as they are, exactly.
// `value` is right to 2^-48 (|a| + |b|); `error` bounds the distance of a kernel's element from
// `value`, that included. No libm: the same bits on every machine. The turn is reduced exactly, by
// 128-bit fixed point, so any 64-bit position (negative too) is as good as 0.
// A kernel may compute the angle in fp32: its error grows with position, and so does the bound.
// Source: Su et al. 2021 (RoFormer); kverify_plugin.h (positions are 0-based position ids).
// Example:
//   Rotator rotator({.pairing = RopePairing::kNeox, .dims = 64, .theta = 10000}, {});
//   RotatedRow q = rotator.rotate(position, query);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/case/case.h"

namespace kv::reference {

/// What may be assumed of a kernel's rotation.
struct RopeArithmetic {
  double frequency_error = 16 * 0x1p-24;  // relative, of theta^(-2i/dims): exp2 of an fp32 product
  double angle_error = 0x1p-24;           // relative, of position * frequency in fp32
  double sine_error = 0x1p-20;            // absolute, of sine and cosine (sin.approx: 2^-20.5)
  bool operator==(const RopeArithmetic&) const = default;
};

struct RotatedRow {
  std::vector<double> value, error;
};

class Rotator {
 public:
  /// dims is even; theta is at least 1 and finite.
  Rotator(const Rope& rope, const RopeArithmetic& arithmetic);
  RotatedRow rotate(int64_t position, std::span<const double> row) const;

 private:
  using Turns = unsigned __int128;  // of 2^-128 of a full turn, modulo one turn
  const Rope rope_;
  const RopeArithmetic arithmetic_;
  std::vector<Turns> step_;        // turn of each pair for one position
  std::vector<double> frequency_;  // the same in radians
};

/// A rotated row as operands of `type`: what rounding adds to `error`.
void add_rounding(DType type, RotatedRow& row);

}  // namespace kv::reference
