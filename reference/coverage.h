// Purpose: what a row's check is worth: which keys could not have been lost unnoticed.
// Contract: a key is certified when every kernel that leaves it out, whatever its rounding, must be
// rejected by the black-box bounds: for some column (or for the LSE) the admissible intervals with
// and without the key are disjoint. No faulty kernel is run. A key that is not certified may still
// be found missing; nothing is said of it.
// Source: NUMERICS §2.2 (corollary), §6.3.
// Method: without key i of weight p, q = 1/(1-p): O' = O + p q (O - v_i), LSE' = LSE + ln(1-p),
// and every sum over the remaining keys grows by at most q. The bound B' follows from sums that are
// computed once for each column, so the whole row costs no more than its own bound.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/precise/row.h"
#include "reference/profile.h"

namespace kv::reference {

struct RowCoverage {
  std::vector<uint8_t> certified;     // [n], in the order of the row's visible keys
  double uncertified_weight_max = 0;  // every heavier key is certified: the row's sensitivity
  uint64_t count() const;
};

RowCoverage certified_keys(const RowInputs& inputs, const Profile& profile, DType output_dtype);

}  // namespace kv::reference
