// Purpose: where the program must look whether a register has been written.
// Contract: a register that liveness shows to be live at entry is read, on some path, before it is
// written; mostly no thread ever takes that path. Such a register is watched: a mask of lanes that
// have written it is set by `marks` after its definitions, and `checks` before its uses look. Where
// every path has already passed one of them for the thread, nothing is needed (a forward must
// analysis), so that loops that begin by writing pay nothing.
// Example: Watch watch = watch_registers(lowered, file.live_at_entry);
#pragma once

#include <cstdint>
#include <vector>

#include "harness/simt/exec/lower/lower.h"

namespace kv::simt {

struct Watch {
  /// For each step, indices into the list of watched registers.
  std::vector<std::vector<uint16_t>> checks, marks;
  /// Of checks: also those of the guard, which every active lane reads.
  std::vector<std::vector<uint16_t>> guard_checks;
};

Watch watch_registers(const Lowered& lowered, const std::vector<uint32_t>& watched);

}  // namespace kv::simt
