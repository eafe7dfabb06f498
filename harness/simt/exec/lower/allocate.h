// Purpose: from virtual registers to the slots of a small register file.
// Contract: liveness by data flow over the steps' own control flow, for each thread: a guarded
// definition does not end a life, since lanes that skip it keep the old value. Then linear scan.
// A destination never shares a slot with a source of the same step. Constants and special registers
// keep their slot for the whole kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/simt/exec/lower/lower.h"

namespace kv::simt {

struct RegisterFile {
  std::vector<uint16_t> place;          // of each virtual register: slot, or predicate index
  std::vector<uint32_t> live_at_entry;  // may be read before written
  uint32_t slots = 0, predicates = 0;
  uint32_t registers = 0;  // most 32-bit registers live at once, constants aside
};

Result<RegisterFile> allocate_registers(const Lowered& lowered);

}  // namespace kv::simt
