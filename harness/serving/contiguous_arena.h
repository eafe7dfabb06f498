// Purpose: what a cache without pages would do: each request gets one contiguous run of memory for
// its worst case, the first gap that is long enough.
// Contract: a request that finds none is placed nowhere and counted: blocked by gaps when the free
// memory would have sufficed in one piece (external fragmentation), else without room. Units are
// the caller's. Example:  ContiguousArena a(100); a.reserve(1, 30); a.release(1);
// a.space().longest;
#pragma once

#include <cstdint>
#include <map>

namespace kv {

struct FreeSpace {
  uint64_t free = 0, longest = 0;  // of one gap
};
/// Share of the free space that is not in its longest gap; 0 of none.
double external_fragmentation(const FreeSpace& space);

class ContiguousArena {
 public:
  explicit ContiguousArena(uint64_t size) : free_(size) {
    if (size > 0) gaps_[0] = size;
  }

  bool reserve(uint64_t holder, uint64_t size);
  void release(uint64_t holder);  // of nothing: nothing
  FreeSpace space() const;
  uint64_t blocked_by_gaps() const { return blocked_by_gaps_; }
  uint64_t without_room() const { return without_room_; }

 private:
  struct Run {
    uint64_t begin = 0, size = 0;
  };
  std::map<uint64_t, uint64_t> gaps_;  // begin -> size, never adjacent
  std::map<uint64_t, Run> runs_;       // by holder
  uint64_t free_;
  uint64_t blocked_by_gaps_ = 0, without_room_ = 0;
};

}  // namespace kv
