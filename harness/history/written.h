// Purpose: the bytes of slots where append rotates, converts or quantises K and V.
// Contract: a slot's scales are those of its token, or of the first token of its page, bit for bit.
// Bytes that nobody has seen must be ones that an append of the token may write: each element in
// its admissible set (reference/stored_row.h). Once seen they are kept, and wherever they are moved
// (fork, swap, restore, defrag, another beam) the token has them again, exactly, until it is
// appended anew. K that a shift has turned must come from bytes that were seen, or that might have
// been written, before it. What was seen costs a look-up: admissible sets are made once.
// Example:
//   written.note_appended(history, draft);
//   if (auto fault = written.find_fault({.token = t, .layer = layer}, bytes, scales)) ...
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/engine/content.h"
#include "harness/history/model.h"
#include "reference/stored_row.h"

namespace kv {

class Written {
 public:
  explicit Written(const Case& c);

  /// Whether K, or V, is stored otherwise than it is given.
  bool changes(bool value) const { return rows_.changes(value); }
  bool has_page_scales() const { return case_.shape.kv_scale == KvScale::kPage; }

  void note_appended(uint64_t history, bool draft) { appended_.insert({history, draft}); }
  void note_turned(const Turned& turned);
  /// Everything that was appended so far has been looked at, wherever it lies.
  void settle() { appended_.clear(); }

  struct Slot {
    StoredToken token;
    uint64_t scale_history = 0;  // of the token that the scale belongs to
    ContentLayer layer;
    bool value = false;
  };
  /// What is wrong with K, or V, of a slot, all heads; in words.
  std::optional<std::string> find_fault(const Slot& slot, std::span<const std::byte> bytes,
                                        std::span<const float> scales);

 private:
  using Bytes = std::vector<std::byte>;
  struct Key {
    uint64_t history = 0;
    int64_t position = 0, turned_back = 0;
    uint32_t layer = 0;
    bool draft = false, value = false;
    auto operator<=>(const Key&) const = default;
  };
  static Key key_of(const Slot& slot);
  /// All heads of a row that is about to be stored.
  struct Source {
    std::vector<std::vector<double>> heads;
    double error = 0;
    int64_t position = 0;  // to be turned to
  };
  Source source_of(const Slot& slot) const;
  std::vector<Source> sources_of(const Slot& slot);
  std::vector<Source> sources_before_turn(const Slot& slot, int64_t back);
  Source decoded(std::span<const std::byte> bytes) const;
  bool admits(const reference::StoredRows& rows, const Slot& slot, const Source& source,
              std::span<const std::byte> bytes);
  std::optional<std::string> find_scale_fault(const Slot& slot, std::span<const float> scales);
  std::string element_fault(const Slot& slot, const Source& source,
                            std::span<const std::byte> bytes);
  std::string likely_cause(const Slot& slot, const Source& source,
                           std::span<const std::byte> bytes);
  size_t elements(bool value) const {
    return value ? case_.shape.head_dim_v : case_.shape.head_dim_k;
  }

  const Case& case_;
  Content content_;
  reference::StoredRows rows_;
  std::map<Key, std::vector<Bytes>> seen_;
  std::map<Key, std::set<int64_t>> turns_;  // by how far K came there; layer 0 stands for all
  std::set<std::pair<uint64_t, bool>> appended_;
  std::vector<float> scales_;                    // of the slot that is looked at
  std::vector<reference::RowElement> elements_;  // of one head
};

}  // namespace kv
