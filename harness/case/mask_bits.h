// Purpose: what the mask tensor of a case shows and hides.
// Contract: a pure function of (data seed, request, query row of the step, key slot), without the
// coordinates that the tensor broadcasts: a key that a tensor [1, H, 1, K] hides is hidden from
// every row of every request. Heads differ in nothing. A mask only takes away: what a row sees is
// real, causal, window and tree sets, and this one. PAD slots between real tokens (holes) are
// hidden here and nowhere else, so a tensor that is shared by all requests cannot have them.
// Example: if (mask_shows(c, sequence, {.query = 3, .key = 17})) ...
#pragma once

#include "harness/case/timeline.h"

namespace kv {

struct MaskPlace {
  uint32_t query = 0;  // 0-based among the row's query rows of this step
  uint32_t key = 0;    // slot
};

/// True for every place where the case has no mask tensor.
bool mask_shows(const Case& c, const Sequence& sequence, MaskPlace where);

}  // namespace kv
