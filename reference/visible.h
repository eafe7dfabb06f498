// Purpose: which keys a query row may see, from the set definition alone.
// Contract: shares no code with any kernel, nor with Timeline: a mistake made there is not made
// here. The visible set of row i is the intersection of four sets of slots j in [0, kv_length):
//   real    {j : slot j holds a token, not PAD}
//   causal  {j : j <= limit(i)}, limit(i) = i (top left) or kv_length - queries + i (bottom right)
//   window  {j : anchor(i) - left <= j <= anchor(i) + right}, both inclusive, a side of -1 is open;
//           anchor(i) = limit(i), and the bottom-right limit where causal is none
//   tree    {j : j is older than this step's new tokens, or is the row's token or its ancestor}
// A row that stands at no new token (PAD, or older) is not restricted by the tree.
// Source: kverify_plugin.h (kv_attention_shape, kv_attend_args).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/case/case.h"

namespace kv::reference {

struct MaskGeometry {
  Causal causal = Causal::kBottomRight;
  int64_t window_left = -1, window_right = -1;
  uint32_t queries = 0;
  /// One entry for each slot of the request: 1 real, 0 PAD. Its size is kv_length.
  std::span<const uint8_t> real;
  /// Slots appended by this step, the last of the request.
  uint32_t append_slots = 0;
  /// Parent of each real appended token, as an index among them, -1 the root; empty: no tree.
  std::span<const int32_t> tree_parents;
};

/// 0/1 for each slot: what query row `query`, 0-based among geometry.queries, sees.
std::vector<uint8_t> visible_keys(const MaskGeometry& geometry, uint32_t query);

}  // namespace kv::reference
