// Purpose: everything that objects to a plugin, over all of some cases: for the matrix of which
// property kills which planted bug, where a campaign would end with its first finding.
// Contract: runs in a process that has loaded the plugin, on the CPU device, and is lost with it.
// Each case and its image run once, one after the other; nothing is repeated in a fresh process, so
// this attributes and proves nothing.
// Example:  KV_ASSIGN_OR_RETURN(const Attribution all, attribute(bench, cases));
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/case/case.h"
#include "harness/run/kernel_run.h"

namespace kv {

struct Attribution {
  uint64_t cases = 0;  // that were judged
  /// By stage and failure class: cases.
  std::map<std::pair<std::string, std::string>, uint64_t> objectors;
};

Result<Attribution> attribute(const Bench& bench, const std::vector<Case>& cases);

}  // namespace kv
