// Purpose: how undefined bits of sources become undefined bits of destinations.
// Contract: pure. Bits beyond a register's width are zero on input and ignored on output.
#pragma once

#include <cstdint>

#include "harness/simt/exec/program.h"

namespace kv::simt {

struct TaintRule {
  const Meta* meta = nullptr;
  const Ins* ins = nullptr;
  uint32_t exec = 0;
  uint64_t undefined[10][32] = {};  // of each source
  uint64_t value[10][32] = {};
  uint64_t result[4][32] = {};  // undefined bits of each destination
};

void apply_taint_rule(TaintRule& rule);

}  // namespace kv::simt
