// Purpose: what kind of work an instruction is.
// Contract: every instruction has exactly one class, by its opcode and type alone. An access
// through a generic address counts as global, as compilers use them for what they cannot tell.
// Source: the grouping of PTX ISA 9.0, section 9.7.
#pragma once

#include <cstdint>

#include "harness/simt/ptx/module.h"

namespace kv::simt::profile {

enum class InstructionClass : uint8_t {
  kInteger,   // add to popc, and logic and shifts
  kFloat,     // f32
  kHalf,      // f16, bf16 and pairs of them
  kDouble,    // f64
  kSpecial,   // ex2, lg2, sin, cos, tanh, rcp, rsqrt, sqrt
  kMatrix,    // mma
  kConvert,   // cvt, cvta
  kCompare,   // setp, set, selp
  kMove,      // mov, prmt
  kLane,      // shfl, vote, match, redux, movmatrix
  kGlobal,    // ld and st of global memory
  kShared,    // ld, st, ldmatrix, stmatrix of shared memory
  kLocal,     // ld and st of local memory
  kConstant,  // ld of constants and parameters
  kAtomic,    // atom, red
  kAsync,     // cp.async, its commits and waits
  kBarrier,   // bar, fence
  kBranch,    // bra, call, ret, exit
  kOther,
};
constexpr uint32_t kInstructionClasses = 19;

/// "integer", "float", ...
const char* class_name(InstructionClass c);
InstructionClass class_of(const ptx::Instruction& ins);

}  // namespace kv::simt::profile
