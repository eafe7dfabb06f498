// Purpose: which bits of a step differ between two builds.
// Contract: pure. Elements are those of O, one each; rows are (token, query head); a row has
// changed when an element of it or its LSE has. Steps that one of the builds did not finish, and
// results of another size than the case asks for, are counted apart and compared no further.
// Example: BitChanges changes; add_step(c, old_step, new_step, changes[pair_of(old_step,
// new_step)]);
#pragma once

#include <cstdint>
#include <string>

#include "harness/case/case.h"
#include "harness/run/observation.h"

namespace kv {

struct BitChanges {
  uint64_t steps = 0, steps_changed = 0;
  uint64_t steps_incomparable = 0;  // not finished by both, or of different sizes
  uint64_t rows = 0, rows_changed = 0;
  uint64_t elements = 0, elements_changed = 0;
  uint64_t lse = 0, lse_changed = 0;
  uint64_t pages = 0, pages_changed = 0;  // of the cache, that the step wrote
  /// Largest distance of two elements in representable numbers of the output type; that of a NaN
  /// and a number, or of numbers of different type, is the largest there is.
  uint64_t ulps_max = 0;

  bool any() const { return steps_changed + steps_incomparable > 0; }
  void merge(const BitChanges& other);
};

void add_step(const Case& c, const OpObservation& before, const OpObservation& after,
              BitChanges& changes);

/// Distance in representable numbers; 0 exactly for equal bits. Both zeros are one number apart.
uint64_t ulp_distance(DType type, uint32_t a, uint32_t b);

}  // namespace kv
