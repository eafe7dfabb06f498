// Purpose: the coefficients of the bounds B0 and of the LSE (docs/numerics.md §2.2, §2.5).
// Contract: every field is an upper bound of what it is named after, found by plain arithmetic;
// kSlack on the final bound stands in for directed rounding. Infinity means that the profile
// permits so much that the bound says nothing (vacuous).
// The bound itself, from these coefficients and one row's data, is in precise/row.h.
#pragma once

#include <cstdint>
#include <limits>

#include "reference/inputs.h"
#include "reference/profile.h"

namespace kv::reference {

inline constexpr double kUnit32 = 0x1p-24;  // unit roundoff of fp32
inline constexpr double kSlack = 1 + 0x1p-30;

/// 2^exponent, exactly, for normal numbers.
double power_of_two(int exponent);
/// Its inverse: of a positive normal number, rounded down.
int exponent_of(double x);
/// Of a floating format; 0 for integers, which have no subnormal numbers.
double smallest_normal(DType type);
/// exp(x) - 1 <= x (1 + x) for 0 <= x <= 1; infinity above.
double expm1_bound(double x);
/// n u / (1 - n u) of fp32; infinity from n u = 1/2.
double gamma32(double n);
/// Relative error of one fused step (Lemma 2, coarse form).
double step_error(const Accumulation& a);
/// Error of `steps` fused steps, or of that many fp32 operations, relative to the sum of
/// magnitudes, in any order and grouping.
double accumulation_error(const Accumulation& a, uint64_t steps);

/// What the coefficients depend on besides the profile.
struct RowExtent {
  uint32_t dim_k = 0;
  uint64_t keys = 0;  // visible, at least 1
  uint64_t span = 0;  // last visible slot - first visible slot + 1
  bool softcap = false, scaled_kv = false;
  DType query_dtype = DType::kF16, kv_dtype = DType::kF16;
  bool sink = false;
};

/// E_i = scores*(S_i + F_i) + tanh*|x_i| + bias*|bias_i| + argument*(|x_i|+|x|_max) +
/// distance*(x_max-x_i)
///       + exponential + split;   Theta_i = E_i (1 + E_i) bounds the relative error of w_i.
struct Coefficients {
  double scores = 0, tanh = 0, bias = 0, argument = 0, distance = 0, exponential = 0;
  double split_scores = 0, split_lse = 0, split_constant = 0;  // times |x|_max, |LSE|, 1
  double probability_relative = 0;                             // u_p
  double probability_absolute = 0;  // half the smallest subnormal of P's type, in final scale
  bool probability_normalised = false;
  // Smallest normal operands: hardware may align a subnormal one as if it were that. 0 for fma.
  double query_normal = 0, key_normal = 0, value_normal = 0, probability_normal = 0;
  double accumulation = 0;         // of P.V, rescaling and dequantisation included
  double dequantised = 0;          // of an element of K or V, where they carry scales: relative,
  double dequantised_quantum = 0;  // and absolute, where it is subnormal
  // Scaled K and V beyond the operands' range, or scales that P cannot hold: anything may come.
  double operand_max = std::numeric_limits<double>::infinity();
  double folded_scale_max = std::numeric_limits<double>::infinity();
  bool scale_in_probability = false;  // V's scale may have been folded into P before it is rounded
  double row_sum = 0, division = 0;
  double log2_error = 0;  // absolute, in base 2, for each power of two of L
  double underflow = 0;   // times the largest |v|
};

Coefficients coefficients(const Profile& profile, const RowExtent& extent);

}  // namespace kv::reference
