// Purpose: whose values are needed where basic blocks meet.
// Contract: data flow for each thread: a guarded definition does not end a life, since lanes that
// skip it keep the old value. Most registers are written and read within one block and never
// needed at a border: they have no bit.
// Example: live.in[0].for_each([&](uint32_t bit) { unwritten.push_back(live.registers[bit]); });
#pragma once

#include <cstdint>
#include <vector>

#include "harness/simt/exec/lower/flow.h"

namespace kv::simt {

struct Liveness {
  std::vector<uint32_t> registers;  // of each bit, ascending
  std::vector<BitRow> in, out;      // of each block
};

/// Of the registers that are `followed`.
Liveness liveness_of(const Lowered& lowered, const Flow& flow, const std::vector<bool>& followed);

}  // namespace kv::simt
