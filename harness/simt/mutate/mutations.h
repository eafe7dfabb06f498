// Purpose: small changes of one PTX instruction, as mutation testing makes them.
// Contract: pure. The list of an instruction depends on nothing but its function; a change keeps
// the number of instructions, its operands stay valid, and what it lowers to exists wherever the
// original's form does. (operator, variant) names one change of an instruction for good: new ones
// get new numbers.
// Example:
//   for (const Mutation& m : mutations_of(f, f.code[k]))
//     print(operator_name(m.op), instruction_text(f, f.code[k]), changed_text(f, m.changed));
// Source: DeMillo, Lipton, Sayward, "Hints on test data selection", 1978; the operators are those
// of Offutt et al., "An experimental determination of sufficient mutant operators", 1996, and what
// a GPU adds: barriers, fences, waits, lanes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/simt/ptx/module.h"

namespace kv::simt::mutate {

enum class Operator : uint8_t {
  kCompare = 1,  // 0: the boundary moves (lt, le), 1: the opposite (lt, ge); min and max
  kConstant,     // an integer or an address offset, in units: 2n: operand n + 1, 2n + 1: - 1
  kSwap,         // two operands, or the first two elements of operand n - 1 (variant n)
  kBarrier,      // dropped
  kFence,        // dropped
  kWait,         // 0: dropped, 1: one group more may be open
  kAddSub,       // add for sub and the reverse
  kShift,        // 2n: the amount in operand n + 1, 2n + 1: - 1
  kNegate,       // the guard
  kGuard,        // 0: removed, 1: a branch never taken
  kLane,         // of a shuffle. 0: another mode, 1: lane + 1, 2: lane doubled
  kNarrow,       // a 64-bit product or shift is cut to 32 bits and sign-extended
};
constexpr uint32_t kOperators = 12;

/// "compare", "constant", ...; "unknown" for anything else.
const char* operator_name(Operator op);

struct Mutation {
  Operator op = Operator::kCompare;
  uint32_t variant = 0;
  ptx::Instruction changed;
};

std::vector<Mutation> mutations_of(const ptx::Function& function, const ptx::Instruction& ins);

/// As instruction_text, and words for what PTX has no text for.
std::string changed_text(const ptx::Function& function, const ptx::Instruction& changed);

}  // namespace kv::simt::mutate
