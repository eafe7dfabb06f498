// Purpose: what the mask tensor of a case shows and hides.
// Contract: a pure function of (data seed, request, query head, query row of the step, key slot),
// without the coordinates that the tensor broadcasts: a key that head h of a tensor [1, H, 1, K]
// hides is hidden from that head of every row of every request. The data view turns heads as it
// turns those of Q. A mask only takes away: what a row sees is real, causal, window and tree sets,
// and this one. PAD slots between real tokens (holes) are hidden here and nowhere else, so a tensor
// that is shared by all requests cannot have them.
// Example: const MaskRow row(c, sequence, {.query = 3, .head = 1});  if (row.shows(17)) ...
#pragma once

#include "harness/case/timeline.h"
#include "harness/core/philox.h"

namespace kv {

/// How many query heads have a mask of their own: 1 when they share one, or there is none.
uint32_t mask_heads(const Case& c);

/// One row of the tensor. What the keys of a row share is found once.
class MaskRow {
 public:
  /// The sequence must outlive the row.
  MaskRow(const Case& c, const Sequence& sequence, QueryHead of);
  /// True for every slot where the case has no mask tensor.
  bool shows(uint32_t key) const;

 private:
  /// The shapes that masks have, and the ones that break kernels; or the bits of a given number.
  enum class Kind : uint8_t { kEverything, kSparse, kTiles, kRun, kNothing, kNumber };
  static Kind kind_of(uint64_t word);

  const Sequence& sequence_;
  Kind kind_ = Kind::kEverything;
  bool hides_pads_ = false;
  Philox random_ = {};  // kNumber: the key is the number
  uint64_t row_ = 0;    // kNumber: its bit of the first key
  uint64_t run_begin_ = 0, run_end_ = 0;
};

}  // namespace kv
