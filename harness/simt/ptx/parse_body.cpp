// Scopes, registers and labels inside a function's body.
#include "harness/simt/ptx/parser.h"

namespace kv::simt::ptx {

/// One statement. `{` and `}` open and close scopes; the body's own braces count as one.
bool Parser::statement() {
  if (token_.is('{')) {
    if (scopes_.size() == Limits::kScopeDepth) return fail("blocks nested less deeply");
    advance();
    scopes_.emplace_back().first_fixup = fixups_.size();
    names_.enter();
    return true;
  }
  if (token_.is('}')) return leave_scope();
  if (accept(';')) return true;
  if (token_.is_directive()) return body_directive();
  Instruction next;
  if (token_.is('@')) {
    if (!guard(&next)) return false;
  } else if (!token_.is_word()) {
    return fail("an instruction, directive, label or '}'");
  }
  const Token word = token_;
  advance();
  if (token_.is(':') && next.guard < 0) {
    advance();
    return label(word);
  }
  return instruction(word, std::move(next));
}

bool Parser::leave_scope() {
  advance();
  resolve_branches();
  scopes_.pop_back();
  names_.leave();
  return true;
}

bool Parser::body_directive() {
  if (token_.is_word(".reg")) return registers();
  if (token_.is_word(".loc")) return location();
  if (token_.is_word(".pragma")) return pragma();
  if (token_.is_word(".file")) return file();
  if (token_.is_word(".section")) return section();
  DeclarationHead head;
  while (accept_word(".visible") || accept_word(".weak")) {
  }
  if (accept_word(".extern")) head.is_extern = true;
  if (!declaration_head(&head)) return false;
  return variables(head, &function_->variables);
}

/// `.reg .b32 %r<100>, a, b;`
bool Parser::registers() {
  DeclarationHead head;
  if (!declaration_head(&head)) return false;
  do {
    if (!register_name(head)) return false;
  } while (accept(','));
  return expect(';');
}

bool Parser::register_name(const DeclarationHead& head) {
  const Token name = token_;
  std::string_view text;
  uint64_t count = 1;
  if (!expect_name("a register name", &text)) return false;
  const bool is_range = accept('<');
  if (is_range) {
    if (!expect_integer(Limits::kFunctionRegisters, "a register count", &count)) return false;
    if (!expect('>')) return false;
    if (head.lanes > 1) return refuse(name, "ranges of vector registers are not supported");
  }
  return add_registers(name, count, is_range, head);
}

bool Parser::add_registers(const Token& name, uint64_t count, bool is_range,
                           const DeclarationHead& head) {
  std::vector<RegisterDecl>& registers = function_->registers;
  const uint64_t total = count * head.lanes;
  register_total_ += total;
  register_name_bytes_ += total * name.text.size();
  if (registers.size() + total > Limits::kFunctionRegisters ||
      register_total_ > Limits::kModuleRegisters ||
      register_name_bytes_ > Limits::kRegisterNameBytes) {
    return fail_at(name, "fewer registers");
  }
  Binding binding{.index = int32_t(registers.size()), .count = uint32_t(total)};
  if (head.lanes > 1) binding.kind = Binding::Kind::kVectorRegister;
  const bool is_new =
      is_range ? names_.add_range(name.text, binding) : names_.add(name.text, binding);
  if (!is_new) return fail_at(name, "a name not yet declared in its scope");
  for (uint64_t i = 0; i < total; ++i) {
    std::string own(name.text);
    if (is_range) own += std::to_string(i);
    if (head.lanes > 1) own.append({'.', "xyzwabcd"[i]});
    registers.push_back({std::move(own), head.type});
  }
  return true;
}

/// The colon is already read.
bool Parser::label(const Token& name) {
  if (token_.is_word(".branchtargets")) return branch_targets(name);
  if (token_.is_word(".callprototype") || token_.is_word(".calltargets")) {
    return call_prototype(name);
  }
  const auto target = uint32_t(function_->code.size());
  if (!scopes_.back().labels.emplace(name.text, target).second) {
    return fail_at(name, "a label not yet defined in its block");
  }
  function_->label_names.emplace_back(name.text);
  function_->label_targets.push_back(target);
  return true;
}

/// `table: .branchtargets a, b;`
bool Parser::branch_targets(const Token& name) {
  advance();
  std::vector<std::string_view> targets;
  do {
    if (targets.size() == Limits::kBranchTargets) return fail("fewer branch targets");
    if (!expect_name("a label", &targets.emplace_back())) return false;
  } while (accept(','));
  Binding binding{.kind = Binding::Kind::kBranchTargets, .index = int32_t(branch_tables_.size())};
  if (!names_.add(name.text, binding)) return fail_at(name, "a name not yet declared in its scope");
  branch_tables_.push_back(std::move(targets));
  return expect(';');
}

/// Types of an indirect call, or its possible targets: remembered by name only.
bool Parser::call_prototype(const Token& name) {
  Binding binding{.kind = Binding::Kind::kPrototype};
  if (!names_.add(name.text, binding)) return fail_at(name, "a name not yet declared in its scope");
  while (!token_.is(';')) {
    if (token_.kind == Token::Kind::kEnd || token_.kind == Token::Kind::kBad) {
      return fail("';' after a prototype");
    }
    advance();
  }
  return expect(';');
}

/// Points the innermost scope's branches to its labels. What it does not know may be defined by an
/// enclosing scope, later.
void Parser::resolve_branches() {
  const Scope& scope = scopes_.back();
  size_t kept = scope.first_fixup;
  for (size_t i = scope.first_fixup; i < fixups_.size(); ++i) {
    const BranchFixup fixup = fixups_[i];
    const auto found = scope.labels.find(fixup.label);
    if (found == scope.labels.end()) {
      fixups_[kept++] = fixup;
      continue;
    }
    std::vector<Operand>& operands = function_->code[fixup.instruction].operands;
    Operand& target = fixup.element < 0 ? operands[0] : operands[1].elements[size_t(fixup.element)];
    target.index = int32_t(found->second);
  }
  fixups_.resize(kept);
}

}  // namespace kv::simt::ptx
