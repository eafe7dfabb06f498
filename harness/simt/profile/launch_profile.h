// Purpose: the counters of launches, one by one and summed, as JSON.
// Contract: the text depends on what was counted alone: no times, no addresses. Counters are exact.
// Traffic is 32 bytes for each sector; the compulsory minimum is each distinct byte once for each
// launch.
// Example:  write(path, profile_json(launches));
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "harness/simt/control/kv_simt_control.h"
#include "harness/simt/profile/instruction_class.h"

namespace kv::simt::profile {

struct LaunchProfile {
  uint64_t number = 0;  // 1-based since reset
  std::string kernel;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  kv_simt_counters counters = {};                   // of this launch alone
  uint64_t instructions[kInstructionClasses] = {};  // by warps
};

/// `to` plus what `more` counted; a peak is the greater one.
void add(kv_simt_counters& to, const kv_simt_counters& more);
/// What was counted between two readings, but for the peak of shared memory, which is `after`'s.
kv_simt_counters difference(const kv_simt_counters& after, const kv_simt_counters& before);

std::string profile_json(std::span<const LaunchProfile> launches);

}  // namespace kv::simt::profile
