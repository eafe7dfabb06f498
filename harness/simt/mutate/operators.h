// Purpose: one function for each operator of mutations.h.
// Contract: private to this room. Each appends the changes that its operator makes.
#pragma once

#include "harness/simt/mutate/mutations.h"

namespace kv::simt::mutate {

/// What an operator looks at, and where its changes go.
struct Site {
  const ptx::Function& function;
  const ptx::Instruction& ins;
  std::vector<Mutation>& out;

  /// A copy of the instruction, to be changed in place.
  ptx::Instruction& add(Operator op, uint32_t variant) const;
  bool has(std::string_view modifier) const;
  ptx::Type last_type() const;  // kNone if no modifier is a type
};

void change_comparison(const Site& site);
void change_constants(const Site& site);
void swap_operands(const Site& site);
void drop_synchronisation(const Site& site);
void exchange_add_and_sub(const Site& site);
void change_shift(const Site& site);
void change_guard(const Site& site);
void change_lane(const Site& site);
void narrow_result(const Site& site);

/// An opcode that the device executes as nothing.
inline constexpr std::string_view kNothing = "pmevent";

}  // namespace kv::simt::mutate
