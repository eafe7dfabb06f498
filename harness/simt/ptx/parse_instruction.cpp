#include "harness/simt/ptx/parser.h"

namespace kv::simt::ptx {

/// `@%p` or `@!%p`.
bool Parser::guard(Instruction* instruction) {
  advance();
  instruction->guard_negated = accept('!');
  const int32_t index = token_.is_word() ? names_.find_register(token_.text) : -1;
  if (index < 0 || function_->registers[size_t(index)].type != Type::kPred) {
    return fail("a predicate register after '@'");
  }
  instruction->guard = index;
  advance();
  if (!token_.is_word() || token_.is_directive()) return fail("an instruction after its guard");
  return true;
}

/// The token after the opcode is current.
bool Parser::instruction(const Token& opcode, Instruction instruction) {
  instruction.ptx_line = opcode.line;
  instruction.where = where_;
  if (!split_opcode(opcode, &instruction)) return false;
  bool parsed = false;
  if (instruction.opcode == "bra") {
    parsed = branch(&instruction);
  } else if (instruction.opcode == "brx") {
    parsed = branch_index(&instruction);
  } else if (instruction.opcode == "call") {
    parsed = call(&instruction);
  } else {
    parsed = operands(&instruction);
  }
  if (!parsed) return false;
  if (used_bytes_mask_ != 0 && instruction.opcode == "ld") {
    instruction.used_bytes_mask = used_bytes_mask_;
    used_bytes_mask_ = 0;
  }
  function_->code.push_back(std::move(instruction));
  return expect(';');
}

/// "mma.sync.aligned" to an opcode and modifiers. Blanks may separate them in hand-written code.
bool Parser::split_opcode(const Token& opcode, Instruction* instruction) {
  instruction->text = opcode.text;
  if (token_.is_directive()) {
    std::string& joined = module_.names.emplace_back(opcode.text);
    for (; token_.is_directive() && joined.size() < 1024; advance()) joined += token_.text;
    instruction->text = joined;
  }
  std::string_view rest = instruction->text;
  size_t dots = 0;
  for (char c : rest) dots += c == '.';
  if (dots > Limits::kOperands) return fail_at(opcode, "an opcode with fewer modifiers");
  instruction->modifiers.reserve(dots);
  size_t dot = rest.find('.');
  instruction->opcode = rest.substr(0, dot);
  while (dot != rest.npos) {
    rest.remove_prefix(dot + 1);
    dot = rest.find('.');
    instruction->modifiers.push_back(rest.substr(0, dot));
  }
  return true;
}

bool Parser::operands(Instruction* instruction) {
  if (token_.is(';')) return true;
  scratch_.clear();
  do {
    if (scratch_.size() == Limits::kOperands) return fail("fewer operands");
    if (!operand(&scratch_.emplace_back())) return false;
  } while (accept(','));
  instruction->operands.assign(std::make_move_iterator(scratch_.begin()),
                               std::make_move_iterator(scratch_.end()));
  return true;
}

/// `bra target`.
bool Parser::branch(Instruction* instruction) {
  const Token at = token_;
  std::string_view name;
  if (!expect_name("a label", &name)) return false;
  instruction->operands.emplace_back().kind = Operand::Kind::kLabel;
  fixups_.push_back({name, at.line, uint32_t(function_->code.size()), -1});
  return true;
}

/// `brx.idx index, table`: the table becomes a vector of labels.
bool Parser::branch_index(Instruction* instruction) {
  instruction->operands.resize(2);
  if (!operand(&instruction->operands[0]) || !expect(',')) return false;
  const Binding* binding = token_.is_word() ? names_.find(token_.text) : nullptr;
  if (!binding || binding->kind != Binding::Kind::kBranchTargets) {
    return fail("the label of a .branchtargets directive");
  }
  const auto& table = branch_tables_[size_t(binding->index)];
  branch_target_total_ += table.size();
  if (branch_target_total_ > Limits::kBranchTargets) return fail("fewer branch targets");
  Operand& targets = instruction->operands[1];
  targets.kind = Operand::Kind::kVector;
  targets.elements.resize(table.size());
  for (size_t i = 0; i < table.size(); ++i) {
    targets.elements[i].kind = Operand::Kind::kLabel;
    fixups_.push_back({table[i], token_.line, uint32_t(function_->code.size()), int32_t(i)});
  }
  advance();
  return true;
}

/// `call{.uni} [(returns),] callee [, (arguments)] [, prototype]`. PTX ISA 9.0 section 9.7.12.5.
bool Parser::call(Instruction* instruction) {
  if (accept('(')) {
    if (!operand_list(&instruction->call_returns, ')') || !expect(',')) return false;
  }
  if (!callee(instruction)) return false;
  if (!accept(',')) return true;
  if (accept('(')) {
    if (!operand_list(&instruction->call_arguments, ')')) return false;
    if (!accept(',')) return true;
  }
  const Binding* binding = token_.is_word() ? names_.find(token_.text) : nullptr;
  if (!binding || binding->kind != Binding::Kind::kPrototype) {
    return fail("the label of a .callprototype or .calltargets directive");
  }
  advance();
  return true;
}

bool Parser::callee(Instruction* instruction) {
  const Token at = token_;
  Operand called;
  if (!token_.is_word()) return fail("a function to call");
  if (!resolve_name(at, &called)) return false;
  advance();
  instruction->callee = at.text;
  if (called.kind == Operand::Kind::kRegister) {
    instruction->operands.push_back(std::move(called));
    return true;
  }
  if (called.symbol_ref.kind != SymbolRef::Kind::kFunction) return fail_at(at, "a function");
  instruction->callee_ref = called.symbol_ref;
  return true;
}

bool Parser::operand_list(std::vector<Operand>* list, char closing) {
  if (accept(closing)) return true;
  do {
    if (list->size() == Limits::kParameters) return fail("fewer arguments");
    if (!operand(&list->emplace_back())) return false;
  } while (accept(','));
  return expect(closing);
}

}  // namespace kv::simt::ptx
