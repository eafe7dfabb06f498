// Purpose: what the simulated kernel multiplies: its choice among the operands that a conforming
// kernel may make of the inputs, and the exponents that it aligns subnormal ones by.
// Contract: values are exact. `draw` decides what a rotated query errs by. Refers to the inputs
// that it was made of.
#pragma once

#include <span>
#include <vector>

#include "reference/soundness/simulated_kernel.h"

namespace kv::reference {

/// x as a number of this type, to nearest even and saturated; fp32 is taken as it is.
double rounded_operand(DType type, double x);

struct KernelOperands {
  KernelOperands(const RowInputs& in, const KernelConfig& config, Draw& draw);
  KernelOperands(const KernelOperands&) = delete;

  std::vector<double> query;             // [dim_k] rotated
  std::span<const double> keys, values;  // [n][dim_k], [n][dim_v] dequantised operands, or codes
  /// Operands are codes, and their scales meet scores and weights.
  bool scales_scores = false, scales_weights = false;
  /// Of `normal` in Products: 0 where subnormal operands are aligned by what they are.
  double query_normal = 0, key_normal = 0, value_normal = 0, weight_normal = 0;

 private:
  std::vector<double> dequantised_keys_, dequantised_values_;  // where they are not the inputs'
};

}  // namespace kv::reference
