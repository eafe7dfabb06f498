// Purpose: what the mask tensor of a case shows and hides.
// Contract: a pure function of (data seed, request, query head, query row of the step, key slot),
// without the coordinates that the tensor broadcasts: a key that head h of a tensor [1, H, 1, K]
// hides is hidden from that head of every row of every request. The data view turns heads as it
// turns those of Q. A mask only takes away: what a row sees is real, causal, window and tree sets,
// and this one. PAD slots between real tokens (holes) are hidden here and nowhere else, so a tensor
// that is shared by all requests cannot have them.
// Example: if (mask_shows(c, sequence, {.query = 3, .key = 17, .head = 1})) ...
#pragma once

#include "harness/case/timeline.h"

namespace kv {

struct MaskPlace {
  uint32_t query = 0;  // 0-based among the row's query rows of this step
  uint32_t key = 0;    // slot
  uint32_t head = 0;   // query head
};

/// How many query heads have a mask of their own: 1 when they share one, or there is none.
uint32_t mask_heads(const Case& c);

/// True for every place where the case has no mask tensor.
bool mask_shows(const Case& c, const Sequence& sequence, MaskPlace where);

}  // namespace kv
