// Purpose: undefined data followed through registers, bit by bit (as Valgrind's memcheck does;
// Seward and Nethercote, "Using Valgrind to detect undefined value errors with bit-precision",
// USENIX 2005). Contract: a warp whose registers are all defined runs Program::code and pays
// nothing. The first undefined value moves it to Program::taint_code, where taint_step stands
// before every instruction; when nothing undefined is left it moves back. Undefined data is
// reported where it reaches a branch, a guard of an instruction with effects, an address, or global
// memory.
#pragma once

#include "harness/simt/exec/state.h"

namespace kv::simt {

/// r[0] .. r[count - 1] are masks of lanes that have written some register (Program::watched).
/// Lanes of the guard that read one that they have not written get undefined bits.
const Ins* check_written(Warp& w, const Ins* i);
const Ins* mark_written(Warp& w, const Ins* i);

/// Undefined bits of one lane of an operand; `wide` for 64-bit registers.
uint64_t undefined_bits(const Warp& w, uint16_t slot, bool wide, uint32_t lane);
const Origin& origin_of(const Warp& w, uint16_t slot);
/// Sets them; a nonzero value enters the file with its origin.
void set_undefined(Warp& w, uint16_t slot, bool wide, uint32_t lane, uint64_t bits,
                   const Origin& origin);
void set_undefined_predicate(Warp& w, uint16_t predicate, uint32_t lanes, uint32_t undefined,
                             const Origin& origin);
/// Forgets everything; for a warp that starts anew.
void clear_taint(Warp& w);

/// "the load at a.cu:3 of address 0x... (offset 12 of allocation 2 ...)"
std::string origin_name(const Warp& w, const Origin& origin);
/// Reports undefined data that reaches `what` ("an address", "a branch").
void report_undefined(Warp& w, const Ins* i, uint32_t lane, const Origin& origin, const char* what);

}  // namespace kv::simt
