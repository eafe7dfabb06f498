// Purpose: which tensor of a dump is what, and where a row of Q, K or V lies in it.
// Contract: names, each with the ones that engines give it:
//   q            query                              [batch, rows, heads, dim] or [tokens, heads,
//   dim] k, v         key, key_cache, k_cache; value ... [batch, slots, KV heads, dim], or with a
//   block
//                                                   table [pages, page, KV heads, dim]; with layout
//                                                   head_slot the heads come before the slots
//   block_table  block_tables, page_table           I32 or I64 [batch, pages of the longest]
//   kv_lengths   seq_lens, context_lens, cache_seqlens   I32 or I64 [batch]; without a block table
//                                                   they may be left out: all slots
//   q_lengths    query_lens                         I32 or I64 [batch]; or
//   cu_q         cu_seqlens_q, qo_indptr, query_start_loc   [batch + 1], sums of them from 0;
//                                                   both left out: all rows, or one for each
//                                                   request where q has as many tokens
// The query rows of a request are those of its last slots. A prefix ("layers.3.") is tried before
// the bare name. Every index that follows from the lists lies inside its tensor, or the dump is
// refused.
// Example: KV_ASSIGN_OR_RETURN(const DumpLayout d, find_layout(file, {.prefix = ""}, path));
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case/case.h"
#include "harness/case/tensor_file.h"
#include "harness/core/result.h"

namespace kv {

/// K or V of a dump as pages; without a block table each request is one page of all its slots.
struct DumpCache {
  const StoredTensor* tensor = nullptr;
  uint64_t pages = 0, page_slots = 0, heads = 0, dims = 0;
  bool heads_first = false;

  /// First element of a row.
  uint64_t at(uint64_t page, uint64_t slot, uint64_t head) const {
    return (heads_first ? (page * heads + head) * page_slots + slot
                        : (page * page_slots + slot) * heads + head) *
           dims;
  }
};

struct DumpRequest {
  uint64_t kv_length = 0, queries = 0;
  uint64_t first_query = 0;  // row of q
  std::vector<uint64_t> pages;
};

struct DumpLayout {
  const StoredTensor* query = nullptr;
  uint64_t query_heads = 0;
  DumpCache key, value;
  bool paged = false;
  std::vector<DumpRequest> requests;
  std::set<std::string> used;  // names
};

struct LayoutOptions {
  std::string prefix;
  CacheLayout cache = CacheLayout::kSlotHead;
};
Result<DumpLayout> find_layout(const TensorFile& file, const LayoutOptions& options,
                               std::string_view name);

}  // namespace kv
