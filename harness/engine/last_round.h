// Purpose: what one round of a repeated walk over a list knew of each item, for the next one.
// Contract: items have keys; 0 is none. What the last round added is found once in this one. Lists
// change little between rounds: an item in its old place, or a little further on, costs a
// comparison, a key above all before costs one, and the rest a look-up. Rounds older than the last
// are forgotten. Example:
//   known.begin();  for (item : list) { auto* old = known.find(item.key); ... known.add(key, v); }
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kv {

template <class Value>
class LastRound {
 public:
  void begin() {
    std::swap(last_, now_);
    now_.clear(), index_.clear();
    next_ = 0;
    indexed_ = false;
  }
  /// Of the last round; null: it had no such item, or has given it away already.
  Value* find(uint64_t key) {
    if (key == 0 || key > largest_) return nullptr;
    const size_t end = std::min(next_ + kLookedAhead, last_.size());
    for (size_t i = next_; i < end; ++i) {
      if (last_[i].key == key) return take(i);
    }
    if (!indexed_) {
      for (size_t i = 0; i < last_.size(); ++i) index_.emplace(last_[i].key, i);
      indexed_ = true;
    }
    const auto found = index_.find(key);
    return found == index_.end() || last_[found->second].is_taken ? nullptr : take(found->second);
  }
  /// To this round.
  Value& add(uint64_t key, Value value) {
    largest_ = std::max(largest_, key);
    now_.push_back({key, std::move(value)});
    return now_.back().value;
  }
  size_t size() const { return last_.size() + now_.size(); }

 private:
  struct Item {
    uint64_t key = 0;
    Value value;
    bool is_taken = false;
  };
  static constexpr size_t kLookedAhead = 8;

  Value* take(size_t i) {
    next_ = i + 1;
    last_[i].is_taken = true;
    return &last_[i].value;
  }

  std::vector<Item> last_, now_;
  std::unordered_map<uint64_t, size_t> index_;  // of last_, when it was needed; looked up only
  bool indexed_ = false;
  size_t next_ = 0;       // of last_
  uint64_t largest_ = 0;  // key ever
};

}  // namespace kv
