// Purpose: the control flow of lowered steps as basic blocks, and rows of bits for data flow over
// them.
// Contract: blocks are in the order of their steps; block 0 is the entry.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/simt/exec/lower/lower.h"

namespace kv::simt {

struct Flow {
  std::vector<uint32_t> begin;  // first step of each block; one past the last at the end
  std::vector<std::vector<uint32_t>> successors;
  uint32_t blocks() const { return uint32_t(successors.size()); }
};

Flow flow_of(const Lowered& lowered);

class BitRow {
 public:
  explicit BitRow(size_t bits, bool value = false)
      : words_((bits + 63) / 64, value ? ~uint64_t{0} : 0) {}
  bool get(uint32_t k) const { return words_[k / 64] >> (k % 64) & 1; }
  void set(uint32_t k) { words_[k / 64] |= uint64_t{1} << (k % 64); }
  void clear(uint32_t k) { words_[k / 64] &= ~(uint64_t{1} << (k % 64)); }
  bool meets(const BitRow& other) const {
    uint64_t both = 0;
    for (size_t k = 0; k < words_.size(); ++k) both |= words_[k] & other.words_[k];
    return both != 0;
  }
  /// this |= other; this |= other & ~mask; this &= other. True if something changed.
  bool add(const BitRow& other) {
    return change([&](size_t k) { return words_[k] | other.words_[k]; });
  }
  bool add_without(const BitRow& other, const BitRow& mask) {
    return change([&](size_t k) { return words_[k] | (other.words_[k] & ~mask.words_[k]); });
  }
  bool keep(const BitRow& other) {
    return change([&](size_t k) { return words_[k] & other.words_[k]; });
  }
  template <class F>
  void for_each(F f) const {
    for (size_t k = 0; k < words_.size(); ++k) {
      for (uint64_t w = words_[k]; w; w &= w - 1) f(uint32_t(k * 64 + size_t(__builtin_ctzll(w))));
    }
  }

 private:
  template <class F>
  bool change(F next) {
    uint64_t changed = 0;
    for (size_t k = 0; k < words_.size(); ++k) {
      const uint64_t now = next(k);
      changed |= now ^ words_[k];
      words_[k] = now;
    }
    return changed != 0;
  }

  std::vector<uint64_t> words_;
};

}  // namespace kv::simt
