// Purpose: the recursive-descent parser behind parse_module. Private to this room.
// Contract: every step returns false after fail(), and its caller returns at once; the first
// failure is the one reported. Each .cpp holds one level of the grammar:
//   parse_module.cpp       directives of the module;  parse_source.cpp  source lines, pragmas
//   parse_variable.cpp     variables;  parse_initial.cpp  their initial values
//   parse_function.cpp     heads, parameters;  parse_body.cpp  registers, scopes, labels
//   parse_instruction.cpp  instructions, calls, branches
//   parse_operand.cpp      operands;   parse_constant.cpp  constant expressions
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/core/result.h"
#include "harness/simt/ptx/lexer.h"
#include "harness/simt/ptx/module.h"
#include "harness/simt/ptx/names.h"
#include "harness/simt/ptx/parse.h"

namespace kv::simt::ptx {

/// A constant expression's value; floats as their bit patterns.
struct Constant {
  uint64_t bits = 0;
  Operand::ImmediateKind kind = Operand::ImmediateKind::kInteger;
};

/// `.visible .global .align 4 .v2 .u32`: what comes before a declared name.
struct DeclarationHead {
  bool is_extern = false;
  Space space = Space::kGlobal;
  Type type = Type::kNone;
  uint32_t lanes = 1;
  uint32_t align_bytes = 0;  // 0: natural
};

class Parser {
 public:
  explicit Parser(Module& module) : module_(module), lexer_(module.text) { advance(); }
  Result<void> run();

 private:
  // Tokens and errors.
  void advance() { token_ = lexer_.next(); }
  bool fail(std::string_view expected) { return fail_at(token_, expected); }
  bool fail_at(const Token& token, std::string_view expected);
  bool refuse(const Token& token, std::string_view what);
  bool expect(char punct);
  bool accept(char punct);
  bool accept_word(std::string_view word);
  bool expect_integer(uint64_t limit, std::string_view what, uint64_t* value);
  bool expect_name(std::string_view what, std::string_view* name);
  bool expect_string(std::string_view* text);

  // The module.
  bool module_item();
  bool version();
  bool target();
  bool file();
  bool section();
  bool linkage_item();
  bool location();
  bool pragma();
  std::string_view file_name(uint64_t index) const;
  bool inlined_at(uint64_t position);
  void scan_file_table();

  // Variables.
  bool declaration_head(DeclarationHead* head);
  bool alignment(uint32_t* align_bytes);
  bool attribute();
  bool dimensions(std::vector<uint64_t>* extents);
  bool variables(const DeclarationHead& head, std::vector<Variable>* into);
  bool variable(const DeclarationHead& head, std::vector<Variable>* into);
  bool array_bytes(const DeclarationHead& head, const std::vector<uint64_t>& extents,
                   const Token& at, uint64_t* bytes);
  bool declare_variable(Variable variable, const Token& name, std::vector<Variable>* into,
                        size_t* index);

  // Initial values.
  struct Initial {
    Type type = Type::kB8;
    uint32_t element_bytes = 1;
    std::vector<uint64_t> strides;  // bytes of one child at each level of braces
    uint64_t total_bytes = 0;       // UINT64_MAX for `x[] = {...}`
    uint64_t end = 0;               // one past the last byte that an element reached
    std::vector<uint8_t> bytes;
    std::vector<Variable::Relocation> relocations;
  };
  bool initial_value(const DeclarationHead& head, const std::vector<uint64_t>& extents,
                     Variable* variable);
  bool initial_list(Initial& initial, size_t level, uint64_t begin, uint64_t end);
  bool initial_element(Initial& initial, uint64_t offset);
  bool initial_number(Initial& initial, uint64_t offset, const Token& at, Constant value);
  bool initial_mask(Initial& initial, uint64_t offset, const Token& at, uint64_t mask);
  bool symbol_address(Variable::Relocation* relocation);
  bool reserve_initial(Initial& initial, uint64_t offset, const Token& at);

  // Functions.
  bool function_item(bool is_entry);
  bool declare_function(const Token& name, Function function);
  bool parameter_list(std::vector<Parameter>* parameters, uint64_t* bytes);
  bool parameter(std::vector<Parameter>* parameters, uint64_t* bytes);
  bool bind_parameters(const std::vector<Parameter>& parameters, SymbolRef::Kind kind);
  bool performance_directives(Function* function);
  bool thread_counts(uint32_t (*counts)[3]);
  bool body();
  bool finish_body(uint32_t line);

  // Scopes, registers and labels inside a body.
  bool statement();
  bool body_directive();
  bool leave_scope();
  bool registers();
  bool register_name(const DeclarationHead& head);
  bool add_registers(const Token& name, uint64_t count, bool is_range, const DeclarationHead& head);
  bool label(const Token& name);
  bool call_prototype(const Token& name);
  bool branch_targets(const Token& name);
  void resolve_branches();

  // Instructions.
  bool guard(Instruction* instruction);
  bool instruction(const Token& opcode, Instruction instruction);
  bool split_opcode(const Token& opcode, Instruction* instruction);
  bool operands(Instruction* instruction);
  bool call(Instruction* instruction);
  bool callee(Instruction* instruction);
  bool operand_list(std::vector<Operand>* list, char closing);
  bool branch(Instruction* instruction);
  bool branch_index(Instruction* instruction);

  // Operands.
  bool operand(Operand* out);
  bool word_operand(Operand* out);
  bool resolve_name(const Token& name, Operand* out);
  bool resolve_component(const Token& name, Operand* out);
  bool symbol_operand(const Binding& binding, Operand* out);
  bool vector_operand(Operand* out);
  bool address_operand(Operand* out);
  bool address_base(Operand* out);
  bool addend(int64_t* value);
  bool pair_operand(Operand* out);

  // Constants.
  bool constant(Constant* out, int depth = 0);
  bool constant_tail(int level, int depth, Constant* left);
  bool constant_unary(int depth, Constant* out);
  bool combine(char op, const Token& at, Constant right, Constant* left);

  Module& module_;
  Lexer lexer_;
  Token token_;
  std::optional<Error> error_;
  NameTable names_;

  // State of the function being read.
  struct BranchFixup {
    std::string_view label;
    uint32_t line = 0;
    uint32_t instruction = 0;
    int32_t element = -1;  // in the vector of a brx, or -1
  };
  struct Scope {
    std::unordered_map<std::string_view, uint32_t> labels;
    size_t first_fixup = 0;
  };
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  std::vector<BranchFixup> fixups_;
  std::unordered_map<std::string_view, uint32_t> variable_uses_;
  std::vector<std::vector<std::string_view>> branch_tables_;
  uint32_t used_bytes_mask_ = 0;

  // Source positions. inlined_positions_ maps a position to where its function was inlined,
  // outermost, by the last .loc that named the position.
  SourceLine where_;
  std::unordered_map<uint64_t, std::pair<std::string_view, uint32_t>> inlined_positions_;

  std::vector<Operand> scratch_;  // operands of the instruction being read
  size_t register_total_ = 0;
  size_t register_name_bytes_ = 0;
  uint64_t initial_total_ = 0;
  size_t branch_target_total_ = 0;
};

}  // namespace kv::simt::ptx
