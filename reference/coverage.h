// Purpose: what a row's check is worth: which faults could not have gone unnoticed.
// Contract: a fault is certified when every kernel that has it, whatever its rounding, must be
// rejected by the black-box bounds: for some column (or for the LSE) the admissible intervals of
// the right and of the faulty result are disjoint. No faulty kernel is run. What is not certified
// may still be found; nothing is said of it.
// Source: docs/numerics.md §2.2 (corollary), §6.3, §8.4.
// Method: dropped keys of joint weight p and mean value v, q = 1/(1-p): O' = O + p q (O - v),
// LSE' = LSE + ln(1-p), and every sum over the remaining keys grows by at most q. Doubled: q =
// 1/(1+p), O' = O + p q (v - O), and the sums gain the key's own terms. V rows of two keys
// exchanged: O' = O + (p_a - p_b)(v_b - v_a). The bound of O' follows from sums that are computed
// once for each column, so a whole row costs no more than its own bound.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/precise/row.h"
#include "reference/profile.h"

namespace kv::reference {

/// Of each visible key, in their order: 1 where the fault is certified.
struct RowCoverage {
  std::vector<uint8_t> certified;  // the key left out
  std::vector<uint8_t> doubled;    // the key counted twice
  std::vector<uint8_t> swapped;    // its V row exchanged with the next key's (the last: with first)
  double uncertified_weight_max = 0;  // every heavier key is certified: the row's sensitivity
  uint64_t count() const;             // of certified
};

/// Only `certified` and the sensitivity, as the judge samples them.
RowCoverage certified_keys(const RowInputs& inputs, const Profile& profile, DType output_dtype);
/// Everything.
RowCoverage row_coverage(const RowInputs& inputs, const Profile& profile, DType output_dtype);

/// For each page that holds a visible key, in order: 1 where the loss of all its keys is certified.
struct PageRequest {
  uint32_t page_slots = 16;
};
std::vector<uint8_t> certified_pages(const RowInputs& inputs, const Profile& profile,
                                     DType output_dtype, const PageRequest& request);

/// Whether no kernel can answer both rows alike: the same query over another head's K and V, say.
bool certified_apart(const RowInputs& a, const RowInputs& b, const Profile& profile,
                     DType output_dtype);

}  // namespace kv::reference
