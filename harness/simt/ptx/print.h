// Purpose: an instruction as PTX text again, for reports of what was changed.
// Contract: reads back as the same instruction. The names are those of the function; variables that
// share a name within it keep the number that the parser gave the later ones (`param0#2`).
// Example:  instruction_text(f, f.code[3])  ->  "@!%p1 setp.lt.s32 %p2, %r3, 5;"
#pragma once

#include <string>

#include "harness/simt/ptx/module.h"

namespace kv::simt::ptx {

std::string instruction_text(const Function& function, const Instruction& instruction);

}  // namespace kv::simt::ptx
