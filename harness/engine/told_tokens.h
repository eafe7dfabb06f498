// Purpose: which token path goes before each one that a step was told of.
// Contract: engines ask for tokens in about the order of the step's rows, layer after layer: that
// costs a comparison; any other order costs a look-up. What was not told is not known.
// Example:  told.add(row.histories, row.previous);  const uint64_t* previous = told.previous_of(h);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace kv {

class ToldTokens {
 public:
  void clear() {
    histories_.clear(), previous_.clear(), index_.clear();
    next_ = 0;
  }
  void add(std::span<const uint64_t> histories, std::span<const uint64_t> previous) {
    histories_.insert(histories_.end(), histories.begin(), histories.end());
    previous_.insert(previous_.end(), previous.begin(), previous.end());
  }
  /// Null: nobody told.
  const uint64_t* previous_of(uint64_t history) {
    if (next_ >= histories_.size()) next_ = 0;  // the next layer
    if (histories_.empty() || histories_[next_] != history) {
      if (index_.empty()) {
        for (size_t i = 0; i < histories_.size(); ++i) index_.emplace(histories_[i], i);
      }
      const auto found = index_.find(history);
      if (found == index_.end()) return nullptr;
      next_ = found->second;
    }
    return &previous_[next_++];
  }

 private:
  std::vector<uint64_t> histories_, previous_;
  std::unordered_map<uint64_t, size_t> index_;  // looked up only; empty until it is needed
  size_t next_ = 0;
};

}  // namespace kv
