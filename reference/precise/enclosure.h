// Purpose: an enclosure of a row's exact O and LSE by interval arithmetic, with outward rounding at
// every step: no error analysis of ours stands between the definition and these figures.
// Contract: MPFI at 256 bits; the exact real value lies in [low, high], rounded outward to double.
// Costs about 1.2 microseconds for each (key, dimension). Not used to decide: it checks the tiers.
#pragma once

#include "reference/precise/row.h"

namespace kv::reference {

struct Enclosure {
  double low = 0, high = 0;
};

/// `column` -1: the LSE. `inputs` must hold at least one key and only finite numbers.
Enclosure enclose(const RowInputs& inputs, int64_t column);

}  // namespace kv::reference
