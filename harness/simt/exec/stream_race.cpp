#include "harness/simt/exec/stream_race.h"

#include <algorithm>

#include "harness/simt/check/global_race.h"
#include "harness/simt/exec/report.h"
#include "harness/simt/memory/layout.h"

namespace kv::simt {

const TrackedWork* work_of_stamp(std::span<const TrackedWork> list, uint32_t stamp) {
  const uint32_t clock = stamp >> BlockStamp::kClockShift;
  for (const TrackedWork& work : list) {
    if (clock >= work.first_clock && clock <= work.last_clock) return &work;
  }
  return nullptr;
}

std::vector<TrackedWork> StreamRaces::unordered() const {
  std::vector<TrackedWork> list;
  for (const TrackedWork& work : ran_) {
    const auto& ids = order_.unordered;
    if (std::find(ids.begin(), ids.end(), work.work) != ids.end()) list.push_back(work);
  }
  return list;
}

void StreamRaces::ran(uint32_t first_clock, uint32_t last_clock, std::string name) {
  if (ran_.size() == kRanMax) ran_.erase(ran_.begin(), ran_.begin() + kRanMax / 2);
  ran_.push_back({order_.work, first_clock, last_clock, std::move(name)});
}

void StreamRaces::touch(const TouchedRange& range, uint32_t clock, AddressSpace& space,
                        FindingLog& log) {
  auto* const writers = reinterpret_cast<uint32_t*>(layout::kWriterBase);
  auto* const readers = reinterpret_cast<uint32_t*>(layout::kReaderBase);
  const std::vector<TrackedWork> others = unordered();
  const uint64_t first = AddressSpace::bit(range.address);
  const TrackedWork *wrote = nullptr, *read = nullptr;
  for (uint64_t g = first; g < first + range.bytes; ++g) {
    if (!others.empty() && !wrote) wrote = work_of_stamp(others, writers[g]);
    if (!others.empty() && range.write && !read) read = work_of_stamp(others, readers[g]);
    (range.write ? writers : readers)[g] = BlockStamp::make(clock, 0);
  }
  ran(clock, clock, range.what);
  if (!wrote && !read) return;
  kv_simt_finding f = {};
  f.kind = KV_SIMT_KIND_RACE;
  f.address = range.address;
  copy_text(f.message, std::string(range.what) + (range.write ? " writes " : " reads ") +
                           std::to_string(range.bytes) + " bytes at " + hex(range.address) + ", " +
                           extent_name(space, range.address) + ", which " +
                           (wrote ? wrote->name : read->name) + " in another stream " +
                           (wrote ? "wrote" : "read") + " with nothing to order the two");
  log.add(f);
}

}  // namespace kv::simt
