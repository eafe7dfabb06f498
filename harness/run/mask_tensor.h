// Purpose: the mask tensor and the tree mask of one step, as the kernels will read them.
// Contract: a pure function of case, timeline and step. The mask tensor is dense, [B|1, H|1, Q|1,
// K], with Q the most query rows and K the most slots of a request (so that rows are aligned to
// nothing); what lies past a request's own rows and slots says "visible", on purpose. Packed bits
// are 32-bit words: K becomes ceil(K / 32). The tree mask has one bit for each slot that the step
// appended to the request; rows that no tree restricts have all bits set.
// Example: const MaskTensor mask = make_mask(c, timeline, step);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/case/timeline.h"
#include "harness/run/tensor.h"

namespace kv {

struct MaskTensor {
  DLDataType type = {};
  std::array<int64_t, 4> shape = {};
  std::vector<std::byte> bytes;  // empty: the case has none
};
MaskTensor make_mask(const Case& c, const Timeline& timeline, const PlannedStep& step);

struct TreeMask {
  int64_t columns = 0;               // words of a row
  std::vector<uint32_t> words;       // [query tokens, columns]; empty: no row has a tree
  std::vector<int32_t> first_slots;  // [rows]: slot of bit 0
};
TreeMask make_tree_mask(const Timeline& timeline, const PlannedStep& step);

/// Whether any step of the case has a tree.
bool has_trees(const Case& c);

}  // namespace kv
