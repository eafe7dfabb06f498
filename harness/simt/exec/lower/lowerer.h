// Purpose: the state of lowering one kernel, shared by the files that know one family of opcodes.
// Contract: private to this room. A lowering function appends steps, or returns an error.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/simt/exec/lower/lower.h"

namespace kv::simt {

/// One expanded body: the kernel, or a function at one call.
struct Instance {
  const ptx::Function* function = nullptr;
  std::vector<int32_t> registers;            // PTX register to virtual register, -1: not met yet
  std::vector<int64_t> variables;            // offset of function-scope variables in their space
  std::vector<int64_t> parameters, returns;  // offsets of formal slots in parameter space
  int32_t first_label = 0;                   // label of PTX instruction k: first_label + k
  int32_t end_label = -1;                    // where `ret` of a called function goes
};

class Lowerer {
 public:
  explicit Lowerer(const LowerInput& input) : input_(input) {}
  Result<Lowered> run(const ptx::Instruction** where);

  using Rule = Result<void> (Lowerer::*)(const ptx::Instruction&);

 private:
  // lower.cpp: instances, operands, plain forms
  Result<void> body(Instance& instance);
  Result<void> instruction(const ptx::Instruction& ins);
  Result<void> plain(const ptx::Instruction& ins);
  Result<void> plain(const ptx::Instruction& ins, const FormRow& row);
  void cut_result();
  Result<void> layout_shared();
  Result<void> layout_instance(Instance& instance);
  Instance& here() { return *instances_.back(); }

  uint32_t new_register(char cls);
  uint32_t constant(char cls, uint64_t value);
  uint32_t special(std::string_view name, char cls);
  Result<uint32_t> destination(const ptx::Operand& operand, char cls);
  Result<uint32_t> source(const ptx::Operand& operand, char cls);
  uint32_t register_of(int32_t index);
  char class_of(int32_t index) const;
  /// Value of a symbol: an address in its space; `space` says which.
  Result<uint64_t> symbol_value(const ptx::SymbolRef& ref, ptx::Space* space) const;
  Step& step(const FormRow& row);
  Step& step(const char* form);
  Step& control_step(Handler run);
  int32_t new_label();
  void place_label(int32_t label) { out_.labels[size_t(label)] = uint32_t(out_.steps.size()); }
  Error unsupported_form(const ptx::Instruction& ins, const std::string& why) const;

  // memory.cpp
  struct Address {
    AddressMode mode = AddressMode::kConstant;
    uint32_t base = 0;
    int64_t offset = 0;
    ptx::Space space = ptx::Space::kGeneric;
  };
  Result<Address> address(const ptx::Operand& operand, ptx::Space space);
  Result<void> load(const ptx::Instruction& ins);
  Result<void> store(const ptx::Instruction& ins);
  Result<void> atomic(const ptx::Instruction& ins);
  struct AtomicElement {
    uint8_t mode = 0, width = 0;  // Ins::mode, bytes
    uint32_t index = 0;
  };
  Result<void> atomic_element(const ptx::Instruction& ins, const AtomicElement& element);
  Result<void> copy_async(const ptx::Instruction& ins);
  Result<void> load_matrix(const ptx::Instruction& ins);
  Result<void> store_matrix(const ptx::Instruction& ins);
  Result<void> convert_address(const ptx::Instruction& ins);
  Result<void> is_space(const ptx::Instruction& ins);
  void set_address(Step& s, const Address& a);
  void note_width(ptx::Space space, uint32_t bytes);

  // control.cpp
  Result<void> branch_to(const ptx::Instruction& ins);
  Result<void> branch_table(const ptx::Instruction& ins);
  Result<void> leave(const ptx::Instruction& ins);
  Result<void> call(const ptx::Instruction& ins);
  Result<void> runtime_call(const ptx::Instruction& ins, Handler handler);
  Result<void> barrier_sync(const ptx::Instruction& ins);
  Result<void> barrier_warp(const ptx::Instruction& ins);
  Result<void> barrier_reduce(const ptx::Instruction& ins, uint32_t id, uint32_t count,
                              uint16_t flags);
  Result<void> trap_here(const ptx::Instruction& ins);
  Result<void> nothing(const ptx::Instruction& ins);
  Result<void> fence_here(const ptx::Instruction& ins);
  Result<void> sleep(const ptx::Instruction& ins);

  // data.cpp
  Result<void> move(const ptx::Instruction& ins);
  Result<void> set_predicate(const ptx::Instruction& ins);
  Result<void> shuffle(const ptx::Instruction& ins);
  Result<void> multiply_matrices(const ptx::Instruction& ins);
  Result<void> logic3(const ptx::Instruction& ins);
  Result<void> match_lanes(const ptx::Instruction& ins);
  Result<void> elect_lane(const ptx::Instruction& ins);
  Result<void> synchronous(const ptx::Instruction& ins);
  Result<void> convert(const ptx::Instruction& ins);
  Result<void> carry(const ptx::Instruction& ins);
  Result<void> create_policy(const ptx::Instruction& ins);

  static Rule rule_of(std::string_view opcode);

  const LowerInput& input_;
  Lowered out_;
  std::vector<Instance*> instances_;
  const ptx::Instruction* current_ = nullptr;
  std::map<std::pair<char, uint64_t>, uint32_t> constants_;
  std::map<int, uint32_t> specials_;
  std::map<const ptx::Variable*, uint64_t> shared_;  // offsets
  uint64_t dynamic_shared_ = 0;
  int32_t carry_flag_ = -1;
  size_t first_step_ = 0;  // of the current instruction
};

/// "opcode.mod.mod": the form without blanks.
std::string form_text(const ptx::Instruction& ins);
bool has_modifier(const ptx::Instruction& ins, std::string_view name);
/// The state space that the modifiers name; generic if none.
ptx::Space space_of(const ptx::Instruction& ins);
/// Type named by the last modifier that is one.
std::optional<ptx::Type> last_type(const ptx::Instruction& ins);
char class_of_bytes(uint32_t bytes);

}  // namespace kv::simt
