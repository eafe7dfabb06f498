// Purpose: the bytes of an engine's slots, made from the tokens that it believes lie there: turned
// and quantised where the case says so.
// Contract: conforming, by the reference's own rule: each element is an admissible code. K that
// shifts have turned is made from the K before each of them. kOtherPairing turns the other pairs.
// Example:  store.write_key(cell, layer, key_bytes, scales);
#pragma once

#include <map>
#include <span>
#include <vector>

#include "harness/engine/content.h"
#include "reference/stored_row.h"

namespace kv {

/// A slot as an engine has it.
struct PlainCell {
  StoredToken token;
  int64_t turned_too_far = 0;  // by a fault
  uint64_t scale_history = 0;  // of the token that its scale belongs to
  bool is_rounded_up = false;  // to the largest admissible code instead of the nearest
};

class PlainStore {
 public:
  PlainStore(const Case& c, const Shape& as_stored);

  void write(const PlainCell& cell, ContentLayer layer, bool value, std::span<std::byte> out,
             std::span<float> scales) const;
  struct Turn {
    int64_t gap = 0, turned = 0;  // positions: what it had to be turned back, and was
  };
  /// By a shift; `after`: the token as it is then.
  void note_turned(const StoredToken& after, const Turn& turn);

 private:
  using Rows = std::vector<std::vector<double>>;  // of each head
  void write_given(const StoredToken& token, ContentLayer layer, bool value,
                   std::span<std::byte> out) const;
  Rows decoded(std::span<const std::byte> bytes, DType type, bool value,
               std::span<const float> scales) const;

  const Case& case_;
  Content content_;
  reference::StoredRows rows_;
  std::map<std::pair<uint64_t, int64_t>, Turn> turns_;  // (history, turned back): the last one
};

}  // namespace kv
