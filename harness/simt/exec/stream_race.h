// Purpose: races between streams: what work touched while other work may have run at the same time.
// Contract: tracked work writes its stamps (check/global_race.h) for every byte, with clocks of its
// own, so a stamp says which work it is of. Work that nothing orders after it meets them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/simt/check/finding_log.h"
#include "harness/simt/device.h"
#include "harness/simt/memory/address_space.h"

namespace kv::simt {

/// One launch, copy or fill that ran.
struct TrackedWork {
  uint64_t work = 0;  // WorkOrder::work
  uint32_t first_clock = 0, last_clock = 0;
  std::string name;  // "launch 3 (scale)", for reports
};

/// That one of `list` whose stamp it is, or null.
const TrackedWork* work_of_stamp(std::span<const TrackedWork> list, uint32_t stamp);

/// What a copy or fill touches, in one go.
struct TouchedRange {
  const char* what = "";  // "a copy"
  uint64_t address = 0, bytes = 0;
  bool write = false;
};

class StreamRaces {
 public:
  void set_order(WorkOrder order) { order_ = std::move(order); }
  bool tracked() const { return order_.tracked; }
  /// Those that ran and are not ordered before the work that runs now.
  std::vector<TrackedWork> unordered() const;
  void ran(uint32_t first_clock, uint32_t last_clock, std::string name);
  /// Leaves the stamp `clock` on the range; a finding when unordered work had touched it.
  void touch(const TouchedRange& range, uint32_t clock, AddressSpace& space, FindingLog& log);
  void forget() { ran_.clear(); }

 private:
  static constexpr size_t kRanMax = 4096;  // of older ones nothing is reported
  WorkOrder order_;
  std::vector<TrackedWork> ran_;
};

}  // namespace kv::simt
