// Purpose: certificates that a conforming kernel computes parts of a row without any rounding, so
// that the bound shrinks to the division and the output rounding (designs E1 to E3).
// Contract: computed from the row's own inputs, never from the name of a design.
//  - weights: every visible score is exactly 0, whatever the order of summation, so each weight is
//    ex2(0) = 1 before and after its rounding, and every rescale factor is 1;
//  - row_sum: the sum of the ones is exact;
//  - column: all products are multiples of one power of two and the sum of their magnitudes fits
//    the accumulator, so that every partial sum is exact in any order.
// Source: NUMERICS §2.3 (order-free exact case), §6.1 E1.
#pragma once

#include <cstdint>
#include <span>

#include "reference/profile.h"

namespace kv::reference {

struct ExactWeights {
  bool weights = false, row_sum = false;
};

/// What of a row bears on the certificate.
struct ExactRow {
  bool scores_zero = false;  // sum of |q||k| is 0 for every visible key
  bool biased = false;       // ALiBi or a sink
  uint64_t keys = 0;
};

ExactWeights exact_weights(const Profile& profile, const ExactRow& row);

/// `values`: one column of the visible V rows, `stride` apart.
bool column_is_exact(const Accumulation& accumulation, std::span<const double> values,
                     size_t stride);

}  // namespace kv::reference
