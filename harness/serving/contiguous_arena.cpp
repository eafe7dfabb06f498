#include "harness/serving/contiguous_arena.h"

#include <algorithm>

#include "harness/core/check.h"

namespace kv {

double external_fragmentation(const FreeSpace& space) {
  if (space.free == 0) return 0;
  return static_cast<double>(space.free - space.longest) / static_cast<double>(space.free);
}

bool ContiguousArena::reserve(uint64_t holder, uint64_t size) {
  KV_CHECK(!runs_.contains(holder), "a holder has one run");
  if (size == 0) return true;
  const auto gap = std::ranges::find_if(gaps_, [&](const auto& g) { return g.second >= size; });
  if (gap == gaps_.end()) {
    ++(free_ >= size ? blocked_by_gaps_ : without_room_);
    return false;
  }
  const auto [begin, room] = *gap;
  gaps_.erase(gap);
  if (room > size) gaps_[begin + size] = room - size;
  runs_[holder] = {begin, size};
  free_ -= size;
  return true;
}

void ContiguousArena::release(uint64_t holder) {
  const auto found = runs_.find(holder);
  if (found == runs_.end()) return;
  auto [begin, size] = found->second;
  runs_.erase(found);
  free_ += size;
  auto next = gaps_.lower_bound(begin);
  if (next != gaps_.end() && next->first == begin + size) {
    size += next->second;
    next = gaps_.erase(next);
  }
  if (next != gaps_.begin() && std::prev(next)->first + std::prev(next)->second == begin) {
    std::prev(next)->second += size;
  } else {
    gaps_[begin] = size;
  }
}

FreeSpace ContiguousArena::space() const {
  FreeSpace space{.free = free_};
  for (const auto& [begin, size] : gaps_) space.longest = std::max(space.longest, size);
  return space;
}

}  // namespace kv
