// Purpose: slots of pages copied to other pages, in every layer of a group at once: copy on write
// of a partly filled page, beams that continue what others were, pages that move; and their scales,
// which are slots of 4 bytes.
// Contract: no copy of a launch writes what another one of it reads or writes. Slots of K and of V
// are multiples of 4 bytes, and lie one after the other, in a page and from page to page. They are
// copied 16, 8 or 4 bytes at a time: the most that both are multiples of.
// Example:  SlotCopies copies{.key = ..., .count = 1, .list = {{.from = 7, .to = 90, .slots = 3}}};
//           launch_copy_slots(copies, stream);
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kvattn {

/// All copies of a launch are its parameters: 4 KiB hold them, and no memory must outlive it.
constexpr int32_t kCopiesMax = 160;

struct SlotCopies {
  /// Slots counted through the whole pool: page * page_slots + slot of the page.
  struct Copy {
    int64_t from, to;
    int32_t slots;
  };
  char *key, *value;  // slot 0 of page 0 of the group's first layer
  int64_t layer_bytes;
  int32_t key_bytes, value_bytes;  // of one slot
  int32_t layers, count;
  Copy list[kCopiesMax];
};

cudaError_t launch_copy_slots(const SlotCopies &copies, cudaStream_t stream);

}  // namespace kvattn
