// Purpose: one table from the opcode as written to what executes it.
// Contract: rows are data. `pattern` is an opcode with alternatives in braces, expanded when first
// looked up: "add.{s32,u32}" is two opcodes. Patterns that start with '~' are internal names of
// the decoder. `roles` lists operand classes, destinations before '=': p predicate, 2 32-bit slot
// (also 8 and 16 bits), 4 64-bit, 8 128-bit; a blank means that the decoder knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "harness/simt/exec/program.h"

namespace kv::simt {

struct FormRow {
  const char* pattern;
  const char* roles;
  Taint taint;
  Handler run;
  uint16_t source_bits = 32;  // of kCopy and kSignCopy
  uint8_t mode = 0;           // to Ins::mode
};

struct FormRows {
  const FormRow* rows;
  size_t count;
};

/// The tables of one instruction set.
struct FormSet {
  const char* name;  // "avx512", "avx2", "portable"
  FormRows tables[10];
};

/// The best set that this machine has, but none above the one that KVERIFY_CPU names.
const FormSet& form_set();
/// Null if there is no such form.
const FormRow* find_form(std::string_view text);

}  // namespace kv::simt
