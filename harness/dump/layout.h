// Purpose: which tensor of a dump is what, and where a row of Q, K or V lies in it.
// Contract: names, each with the ones that engines give it:
//   q            query               [batch, rows, heads, dim] or [tokens, heads, dim]
//   k, v         key, key_cache, k_cache; value ... [batch, slots, KV heads, dim], or with a block
//                                    table [pages, page, KV heads, dim]; with layout head_slot the
//                                    heads come before the slots. F16, BF16, F32, or codes of 8
//                                    bits: F8_E4M3, F8_E5M2, I8, or U8 beside a kv_dtype
//   k_scale, v_scale  key_scale, k_scales, key_scales; value_scale ...  of codes: one number, or
//   one
//                                    for each KV head; F16, BF16, F32 or F64, finite, not 0
//   block_table  block_tables, page_table           I32 or I64 [batch, pages of the longest]
//   kv_lengths   seq_lens, context_lens, cache_seqlens   I32 or I64 [batch]; without a block table
//                                    they may be left out: all slots
//   q_lengths    query_lens          I32 or I64 [batch]; or
//   cu_q         cu_seqlens_q, qo_indptr, query_start_loc   [batch + 1], sums of them from 0;
//                                    both left out: all rows, or one for each request where q has
//                                    as many tokens
// The query rows of a request are those of its last slots. A prefix ("layers.3.") is tried before
// the bare name. Every index that follows from the lists lies inside its tensor, or the dump is
// refused.
// A prefix with {} ("layers.{}.") stands for several layers: each number that tensors have there,
// in ascending order. Each has its own q, k and v; what its requests are and hold is the same in
// all. Example: KV_ASSIGN_OR_RETURN(const auto layers, find_layers(file, {.prefix = ""}, path));
#pragma once

#include <cstdint>
#include <optional>
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
  DType type = DType::kF16;
  std::vector<float> scales;  // none, one, or one for each head
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

  bool is_like(const DumpRequest& other) const {
    return kv_length == other.kv_length && queries == other.queries;
  }
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
  std::optional<DType> kv_dtype = {};  // of U8
};
/// One layer; the prefix as it is.
Result<DumpLayout> find_layout(const TensorFile& file, const LayoutOptions& options,
                               std::string_view name);
/// At least one layer; of several each is like the first but for places and values.
Result<std::vector<DumpLayout>> find_layers(const TensorFile& file, const LayoutOptions& options,
                                            std::string_view name);

}  // namespace kv
