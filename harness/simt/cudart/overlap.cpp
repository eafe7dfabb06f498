#include "harness/simt/cudart/overlap.h"

#include <algorithm>
#include <utility>

namespace kv::simt::cudart {

void Overlap::issued(uint64_t id, std::span<const uint64_t> before) {
  Item item{.ran_before = ran_count_};
  for (const uint64_t one : before) {
    const auto found = waiting_.find(one);
    if (found == waiting_.end()) continue;
    const Item& earlier = found->second;
    for (const auto& [chain, position] : earlier.seen) {
      uint64_t& mine = item.seen[chain];
      mine = std::max(mine, position);
    }
    if (item.chain == 0 && chains_.at(earlier.chain).last == one) {
      item.chain = earlier.chain;
      item.position = earlier.position + 1;
    }
  }
  if (item.chain == 0) {
    item.chain = ++chain_count_;
    item.position = 1;
  }
  item.seen[item.chain] = item.position;
  Chain& chain = chains_[item.chain];
  chain.last = id;
  ++chain.waiting;
  waiting_.emplace(id, std::move(item));
}

WorkOrder Overlap::runs(uint64_t id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return {};
  const Item item = std::move(found->second);
  waiting_.erase(found);
  WorkOrder order{.work = id, .tracked = chains_.size() > 1 || !ran_.empty()};
  for (const Ran& earlier : ran_) {
    if (earlier.index < item.ran_before) continue;
    const auto seen = item.seen.find(earlier.chain);
    if (seen != item.seen.end() && seen->second >= earlier.position) continue;
    order.unordered.push_back(earlier.id);
  }
  const auto chain = chains_.find(item.chain);
  if (--chain->second.waiting == 0) chains_.erase(chain);
  if (ran_.size() == kRanMax) ran_.erase(ran_.begin(), ran_.begin() + kRanMax / 2);
  if (waiting_.empty()) {
    ran_.clear();
  } else if (order.tracked) {
    ran_.push_back({.id = id, .chain = item.chain, .position = item.position, .index = ran_count_});
  }
  ++ran_count_;
  return order;
}

void Overlap::clear() {
  waiting_.clear();
  chains_.clear();
  ran_.clear();
}

}  // namespace kv::simt::cudart
