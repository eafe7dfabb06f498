// Purpose: from a PTX function to a straight list of executable steps over virtual registers.
// Contract: direct calls are expanded in place (PTX has no recursion worth running; it is refused),
// so that a warp needs no call stack and a fragment is just an instruction and lanes. Some PTX
// instructions become several steps, of which one counts as an executed instruction.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/core/result.h"
#include "harness/simt/exec/forms.h"

namespace kv::simt {

/// A virtual register: a PTX register of some inlined instance, a constant or a special register.
struct VirtualRegister {
  char cls = '2';  // 'p', '2', '4', '8' as in FormRow::roles
  bool constant = false;
  uint64_t value = 0;  // of a constant
  int special = -1;    // a Special, or -1
};

struct Step {
  Handler run = nullptr;
  Taint taint = Taint::kAll;
  uint16_t source_bits = 32;
  std::vector<uint32_t> destinations, sources;
  int32_t guard = -1;  // virtual predicate
  bool guard_negated = false;
  bool counts = true;         // false: a further step of the same PTX instruction
  bool control = false;       // ends a basic block
  bool falls_through = true;  // control only: the next step may follow
  int32_t target = -1;        // branch: a label, later the index of a step
  bool synchronises = false;  // needs its position in the block (a *.sync)
  bool elsewhere = false;     // done in the prologue: here it only counts
  Ins proto;                  // width, count, space, mode, flags, extra, imm, target
  const ptx::Instruction* source = nullptr;
};

struct Lowered {
  std::vector<VirtualRegister> registers;
  std::vector<Step> steps;
  uint32_t prologue = 0;         // steps in front that a warp runs once for a launch, see hoist.h
  std::vector<uint32_t> labels;  // label to index of a step
  uint32_t static_shared_bytes = 0, dynamic_shared_offset = 0;
  uint32_t local_bytes = 0, frame_bytes = 0;
  uint32_t hints = 0;
  uint32_t narrowest_shared = 4, narrowest_global = 4;  // bytes
  uint32_t widest_shared = 0;
  bool partial_sync = false;
};

/// What lowering needs to know about the world.
struct LowerInput {
  const ptx::Module* module = nullptr;
  const ptx::Function* kernel = nullptr;
  /// Address of a .global or .const variable of the module, by index.
  std::function<uint64_t(int32_t)> variable_address;
};

/// The error of an unknown form is kUnsupported; `where` then points to its instruction.
Result<Lowered> lower(const LowerInput& input, const ptx::Instruction** where);

}  // namespace kv::simt
