#include <algorithm>
#include <array>

#include "harness/simt/ptx/parser.h"

namespace kv::simt::ptx {

/// `.entry name (parameters) directives { body }`, `.func (returns) name (parameters) ... ;`
bool Parser::function_item(bool is_entry) {
  Function function;
  function.is_entry = is_entry;
  uint64_t ignored = 0;
  if (accept_word(".attribute") && !attribute()) return false;
  if (token_.is('(') && !is_entry && !parameter_list(&function.returns, &ignored)) return false;
  const Token name = token_;
  std::string_view text;
  if (!expect_name("a function name", &text)) return false;
  function.name = std::string(text);
  if (token_.is('(') && !parameter_list(&function.parameters, &function.parameter_bytes)) {
    return false;
  }
  if (is_entry && function.parameter_bytes > Limits::kParameterBytes) {
    return fail_at(name, "at most 32764 bytes of kernel parameters");
  }
  if (!performance_directives(&function) || !declare_function(name, std::move(function))) {
    return false;
  }
  if (accept(';')) return true;
  return body();
}

/// A function may be declared any number of times and defined once; function_ is then its place.
bool Parser::declare_function(const Token& name, Function function) {
  const bool defines = token_.is('{');
  const Binding* known = names_.find(name.text);
  if (known && known->symbol.kind == SymbolRef::Kind::kFunction) {
    function_ = &module_.functions[size_t(known->symbol.index)];
    if (function_->has_body && defines) return fail_at(name, "one definition of a function");
    if (defines) *function_ = std::move(function);
    return true;
  }
  Binding binding{.kind = Binding::Kind::kSymbol, .unique_name = name.text};
  binding.symbol = {SymbolRef::Kind::kFunction, int32_t(module_.functions.size())};
  if (!names_.add(name.text, binding)) return fail_at(name, "a name not yet declared");
  function_ = &module_.functions.emplace_back(std::move(function));
  return true;
}

bool Parser::parameter_list(std::vector<Parameter>* parameters, uint64_t* bytes) {
  if (!expect('(')) return false;
  if (accept(')')) return true;
  do {
    if (!parameter(parameters, bytes)) return false;
  } while (accept(','));
  return expect(')');
}

bool Parser::parameter(std::vector<Parameter>* parameters, uint64_t* bytes) {
  if (parameters->size() == Limits::kParameters) return fail("fewer parameters");
  if (token_.is_word(".reg")) return refuse(token_, "parameters in registers are not supported");
  const Token at = token_;
  DeclarationHead head;
  if (!declaration_head(&head)) return false;
  if (head.space != Space::kParam) return fail_at(at, "'.param'");
  std::string_view name;
  const Token name_token = token_;
  if (!expect_name("a parameter name", &name)) return false;
  std::vector<uint64_t> extents;
  Parameter parameter;
  if (!dimensions(&extents)) return false;
  if (!array_bytes(head, extents, name_token, &parameter.size_bytes)) return false;
  parameter.name = std::string(name);
  parameter.type = head.type;
  parameter.align_bytes = head.align_bytes ? head.align_bytes : type_bytes(head.type) * head.lanes;
  const uint64_t align = parameter.align_bytes;
  parameter.offset_bytes = (*bytes + align - 1) / align * align;
  *bytes = parameter.offset_bytes + parameter.size_bytes;
  parameters->push_back(std::move(parameter));
  return true;
}

bool Parser::bind_parameters(const std::vector<Parameter>& parameters, SymbolRef::Kind kind) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == "_") continue;
    Binding binding{.kind = Binding::Kind::kSymbol};
    binding.symbol = {kind, int32_t(i)};
    binding.unique_name = module_.names.emplace_back(parameters[i].name);
    if (!names_.add(binding.unique_name, binding)) return fail("parameters with distinct names");
  }
  return true;
}

/// PTX ISA 9.0 sections 11.2 and 11.4. Those that only advise ptxas are skipped.
bool Parser::performance_directives(Function* function) {
  constexpr auto kAdvice = std::to_array<std::string_view>(
      {".minnctapersm", ".maxnctapersm", ".maxnreg", ".noreturn", ".explicitcluster",
       ".reqnctapercluster", ".maxclusterrank", ".blocksareclusters", ".abi_preserve",
       ".abi_preserve_control"});
  while (token_.is_directive()) {
    uint32_t ignored[3];
    if (accept_word(".maxntid")) {
      if (!thread_counts(&function->max_threads)) return false;
    } else if (accept_word(".reqntid")) {
      if (!thread_counts(&function->required_threads)) return false;
    } else if (token_.is_word(".pragma")) {
      if (!pragma()) return false;
    } else if (std::ranges::find(kAdvice, token_.text) != kAdvice.end()) {
      advance();
      if (token_.kind == Token::Kind::kInteger && !thread_counts(&ignored)) return false;
    } else {
      return fail("a performance directive, '{' or ';'");
    }
  }
  return true;
}

/// `128`, `16, 16` or `8, 8, 2`; those left out are 1.
bool Parser::thread_counts(uint32_t (*counts)[3]) {
  size_t axis = 0;
  std::fill_n(*counts, 3, 1u);
  do {
    uint64_t value = 0;
    if (axis == 3) return fail("at most three dimensions");
    if (!expect_integer(UINT32_MAX, "a thread count", &value)) return false;
    (*counts)[axis++] = uint32_t(value);
  } while (accept(','));
  return true;
}

bool Parser::body() {
  if (!token_.is('{')) return fail("'{' or ';' after a function's head");
  function_->has_body = true;
  fixups_.clear();
  branch_tables_.clear();
  variable_uses_.clear();
  scopes_.clear();
  where_ = {};
  used_bytes_mask_ = 0;
  names_.enter();
  if (!bind_parameters(function_->returns, SymbolRef::Kind::kReturn) ||
      !bind_parameters(function_->parameters, SymbolRef::Kind::kParameter)) {
    return false;
  }
  uint32_t line = 0;
  do {
    line = token_.line;
    if (!statement()) return false;
  } while (!scopes_.empty());
  names_.leave();
  return finish_body(line);
}

/// Reports branches to nowhere, and ends code that would run off its end.
bool Parser::finish_body(uint32_t line) {
  if (!fixups_.empty()) {
    Token at{Token::Kind::kWord, fixups_[0].line, fixups_[0].label, 0};
    return fail_at(at, "a label of this function or an enclosing block");
  }
  std::vector<Instruction>& code = function_->code;
  const auto& targets = function_->label_targets;
  const bool label_at_end = std::ranges::find(targets, code.size()) != targets.end();
  bool falls_through = code.empty() || code.back().guard >= 0;
  if (!falls_through) {
    const std::string_view last = code.back().opcode;
    falls_through =
        last != "ret" && last != "exit" && last != "bra" && last != "brx" && last != "trap";
  }
  if (!falls_through && !label_at_end) return true;
  Instruction& ret = code.emplace_back();
  ret.opcode = ret.text = "ret";
  ret.ptx_line = line;
  ret.where = where_;
  return true;
}

}  // namespace kv::simt::ptx
