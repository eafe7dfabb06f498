// Purpose: what the device of a process consists of: memory, modules, findings, races of streams.
// Contract: one for a process (Device::instance()); device.cpp launches, device_memory.cpp keeps
// memory.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>

#include "harness/simt/device.h"
#include "harness/simt/exec/launch.h"
#include "harness/simt/exec/module_state.h"
#include "harness/simt/exec/report.h"
#include "harness/simt/memory/bits.h"

namespace kv::simt {

kv_simt_config default_config();

struct Device::State {
  AddressSpace& space = AddressSpace::instance();
  FindingLog log;
  kv_simt_config config = default_config();
  kv_simt_counters counters = {};
  std::vector<std::unique_ptr<LoadedModule>> modules;
  BlockPlaces places;
  std::vector<Extent*> hints;
  std::vector<uint8_t> parameters;
  MatrixMemo matrix_memo;
  Extent* workspace = nullptr;  // of grid-wide barriers
  uint64_t launches = 0, kernels = 0, unique = 0, allocations_left = 0;
  std::span<uint8_t> edges;  // of the caller
  uint32_t race_clock = 0;   // of blocks: everything up to it is older than the next launch
  StreamRaces streams;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  static constexpr size_t kUndefinedCopiesMax = 256;
  /// Copies of undefined bytes from device to device, the latest last: the origin of what they
  /// left.
  struct UndefinedCopy {
    uint64_t to = 0, from = 0, bytes = 0;
  };
  std::deque<UndefinedCopy> undefined_copies;

  void note_undefined_copy(const UndefinedCopy& copy) {
    if (undefined_copies.size() == kUndefinedCopiesMax) undefined_copies.pop_front();
    undefined_copies.push_back(copy);
  }
  /// Why the undefined byte at `address` is undefined, as far as that is known.
  std::string origin_of(uint64_t address);

  void api_finding(const std::string& message, uint64_t address = 0, uint64_t bytes = 0) {
    kv_simt_finding f = {};
    f.kind = KV_SIMT_KIND_API;
    f.address = address;
    f.access_bytes = uint32_t(std::min<uint64_t>(bytes, UINT32_MAX));
    if (address) name_allocation(&f);
    copy_text(f.message, message);
    log.add(f);
  }

  /// The allocation nearest to the finding's address.
  void name_allocation(kv_simt_finding* f) {
    const Extent* const e = space.nearest(f->address);
    if (!e) return;
    f->allocation_base = e->base;
    f->allocation_bytes = e->bytes;
    f->allocation_number = space.number(*e);
  }

  /// The live extent that holds the whole range, or an error and a finding.
  Result<Extent*> whole(uint64_t address, uint64_t bytes, const char* what) {
    Extent* const e = space.find(address);
    if (e && e->live() && e->holds(address, bytes)) return e;
    const std::string message =
        std::string(what) + " of " + std::to_string(bytes) + " bytes at " + hex(address) +
        " is not inside one live allocation: " + extent_name(space, address);
    api_finding(message, address, bytes);
    return bad_input(message);
  }

  void make_room_for_clocks() {
    if (race_clock + BlockStamp::kPublishMax + 2 > BlockStamp::kClockMax) {
      const uint64_t bytes = (layout::kEnd - layout::kHeapBase) * 4;
      madvise(reinterpret_cast<void*>(layout::kWriterBase), bytes, MADV_DONTNEED);
      madvise(reinterpret_cast<void*>(layout::kReaderBase), bytes, MADV_DONTNEED);
      madvise(reinterpret_cast<void*>(layout::kChunkBase), bytes / 8, MADV_DONTNEED);
      race_clock = 0;
      streams.forget();
    }
  }

  /// A launch that other work may overlap leaves stamps that can be compared with those of any.
  void track(LaunchState* launch, LaunchCold* cold) {
    if (!streams.tracked() || !(config.checks & KV_SIMT_CHECK_RACE)) return;
    make_room_for_clocks();
    launch->check_global_race = true;
    launch->global_shift = 0;
    launch->whole_chunks = false;
    launch->global_floor = BlockStamp::floor(race_clock);
    cold->clock_max = race_clock + 1;
    cold->unordered = streams.unordered();
    launch->check_stream_race = !cold->unordered.empty();
  }
  /// A copy or fill of the work that runs now touches device memory.
  void track(const TouchedRange& range) {
    if (!streams.tracked() || !(config.checks & KV_SIMT_CHECK_RACE)) return;
    make_room_for_clocks();
    streams.touch(range, ++race_clock, space, log);
  }

  uint32_t probes_for(const Kernel& kernel) const;
  void fill_launch(const LaunchSpec& spec, Kernel& kernel, LaunchState* launch, LaunchCold* cold);
  void report_unsupported(const Kernel& kernel, const Error& error);
};

}  // namespace kv::simt
