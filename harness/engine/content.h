// Purpose: the bytes of Q, K and V of any token of an engine's models.
// Contract: pure functions of the case and the token; the draft model's layers come after the
// target's, so that the two never share bytes. K and V, each layer and each head differ, and so do
// tokens at one position. K and V are as append receives them; stored bytes may be others, where it
// rotates or quantises, and scales lie beside them.
// Example:  content.key(token, {.layer = 1}, bytes);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/case/case.h"
#include "harness/case/data.h"

namespace kv {

/// What a slot of a cache must hold.
struct StoredToken {
  uint64_t token = 0;       // id
  uint64_t history = 0;     // identity of the path up to and including it
  uint64_t previous = 0;    // of the path before it; 0 for a first token
  int64_t position = 0;     // at which it was appended
  int64_t turned_back = 0;  // by how many positions shifts have turned its K since
  bool operator==(const StoredToken&) const = default;
};

struct ContentLayer {
  uint32_t layer = 0;
  bool draft = false;
};

class Content {
 public:
  explicit Content(const Case& c) : case_(c) {}

  uint32_t key_bytes() const;  // of one token of one layer: all KV heads
  uint32_t value_bytes() const;
  uint32_t query_bytes() const;  // all query heads
  void key(const StoredToken& token, ContentLayer layer, std::span<std::byte> out) const;
  void value(const StoredToken& token, ContentLayer layer, std::span<std::byte> out) const;
  void query(const StoredToken& token, ContentLayer layer, std::span<std::byte> out) const;

  uint32_t stored_key_bytes() const;  // in the cache, of one token of one layer
  uint32_t stored_value_bytes() const;
  bool has_scales() const { return case_.shape.kv_scale != KvScale::kNone; }
  /// Of each KV head: [kv_heads]. `history` is the token's, or of a page the first slot's.
  void scales(uint64_t history, ContentLayer layer, bool value, std::span<float> out) const;

 private:
  struct Part {
    TensorRole role;
    uint32_t heads;
  };
  void fill(const StoredToken& token, ContentLayer layer, Part part,
            std::span<std::byte> out) const;

  const Case& case_;
};

/// The groups of a case: those it lists, or one of all layers.
std::vector<CacheGroup> cache_groups(const Case& c);

}  // namespace kv
