// Purpose: the host arrays of one step, as the kernels will read them.
// Contract: a pure function of case, timeline and step. The block table has one column more than
// the longest row needs; entries past a row's last page are garbage on purpose: the id of a page
// that holds poison, or one that does not exist.
// Example: const Batch batch = make_batch(c, timeline, step);
#pragma once

#include <cstdint>
#include <vector>

#include "harness/case/timeline.h"
#include "harness/run/mask_tensor.h"

namespace kv {

struct Batch {
  uint32_t rows = 0;
  uint32_t table_columns = 0;
  uint32_t appended_tokens = 0, query_tokens = 0;      // of all rows; PAD slots are tokens here
  std::vector<int32_t> block_table;                    // [rows, table_columns]
  std::vector<int32_t> append_offsets, query_offsets;  // [rows + 1]
  std::vector<int32_t> first_slots;                    // [rows]: length before the append
  std::vector<int32_t> query_lengths, kv_lengths, key_begin, key_end;  // [rows]
  std::vector<int64_t> append_positions;                               // [appended_tokens]
  std::vector<int64_t> query_positions;                                // [query_tokens]
  MaskTensor mask;
  TreeMask tree;
  std::vector<PageId> written_pages;  // ascending: pages that the append writes
  struct Place {
    PageId page;
    uint32_t slot = 0;  // in the page
  };
  std::vector<Place> written_slots;  // of tokens that are not PAD
  std::vector<bool> pad_queries;     // [query_tokens]
};

Batch make_batch(const Case& c, const Timeline& timeline, const PlannedStep& step);

}  // namespace kv
