// Purpose: bytes of a K/V cache: of a token, of a request, of a page, on one tensor-parallel rank.
// Contract: exact integers, K and V both counted. Ranks split the KV heads; with more ranks than
// heads each head is kept ranks / heads times; a latent vector (MLA) is kept whole by every rank.
// The largest sizes stay far below 2^63.
// Example:  CacheSize size(model, {.dtype = DType::kF16}); size.request_bytes(4096);
#pragma once

#include <cstdint>

#include "harness/core/formats.h"
#include "harness/core/result.h"
#include "harness/plan/kv_model.h"

namespace kv {

inline constexpr uint32_t kRanksMax = 4096;

struct CacheLayoutChoice {
  DType dtype = DType::kF16;
  uint32_t ranks = 1;  // tensor-parallel
  uint32_t page_slots = 16;
};

class CacheSize {
 public:
  /// Refuses ranks that neither divide the KV heads nor are a multiple of them.
  static Result<CacheSize> create(const KvModel& model, const CacheLayoutChoice& choice);

  const CacheLayoutChoice& choice() const { return choice_; }
  /// K alone, and K and V, of one token in one layer of one rank. MLA keeps nothing but `K`.
  uint64_t key_bytes() const { return key_bytes_; }
  uint64_t layer_token_bytes() const { return key_bytes_ + value_bytes_; }
  /// Of one token in all layers, on one rank and on all of them together.
  uint64_t token_bytes() const { return layer_token_bytes() * layers_; }
  uint64_t token_bytes_all_ranks() const { return token_bytes() * choice_.ranks; }

  /// Pages that a request of `slots` tokens holds for one layer of a group, at the worst moment.
  uint64_t group_pages(const LayerGroup& group, uint64_t slots) const;
  /// Of whole pages, on one rank.
  uint64_t request_bytes(uint64_t slots) const;
  /// Bytes that hold tokens, without the unused ends of pages; decides the worked examples.
  uint64_t request_live_bytes(uint64_t slots) const;

 private:
  KvModel model_;
  CacheLayoutChoice choice_;
  uint64_t key_bytes_ = 0, value_bytes_ = 0, layers_ = 0;
};

}  // namespace kv
