#include <algorithm>
#include <bit>
#include <optional>

#include "harness/simt/ptx/parser.h"

namespace kv::simt::ptx {
namespace {

std::optional<Space> space_from_name(std::string_view name) {
  if (name == ".reg") return Space::kReg;
  if (name == ".param") return Space::kParam;
  if (name == ".shared" || name == ".shared::cta") return Space::kShared;
  if (name == ".global") return Space::kGlobal;
  if (name == ".local") return Space::kLocal;
  if (name == ".const") return Space::kConst;
  return std::nullopt;
}

}  // namespace

/// `.space {.align n | .v2 | .ptr {.space} | .attribute(...)} .type`, in any order after the space.
bool Parser::declaration_head(DeclarationHead* head) {
  const auto space = token_.is_directive() ? space_from_name(token_.text) : std::nullopt;
  if (!space) return fail("a state space or function directive");
  head->space = *space;
  advance();
  while (token_.is_directive()) {
    if (const auto type = type_from_name(token_.text.substr(1))) {
      if (head->type != Type::kNone) return fail("one type");
      head->type = *type;
      advance();
    } else if (token_.is_word(".v2") || token_.is_word(".v4") || token_.is_word(".v8")) {
      head->lanes = uint32_t(token_.text[2] - '0');
      advance();
    } else if (accept_word(".align")) {
      if (!alignment(&head->align_bytes)) return false;
    } else if (accept_word(".attribute")) {
      if (!attribute()) return false;
    } else if (accept_word(".ptr")) {  // what a kernel parameter points to: advice only
      if (token_.is_directive() && space_from_name(token_.text)) advance();
      uint32_t pointee_align = 0;
      if (accept_word(".align") && !alignment(&pointee_align)) return false;
    } else if (token_.is_word(".texref") || token_.is_word(".samplerref") ||
               token_.is_word(".surfref")) {
      return refuse(token_, "textures and surfaces are not supported");
    } else {
      return fail("a type, '.align' or a vector size");
    }
  }
  if (head->type == Type::kNone) return fail("a type");
  if (head->type == Type::kPred && (head->space != Space::kReg || head->lanes > 1)) {
    return fail("a type other than .pred outside of registers");
  }
  return true;
}

bool Parser::alignment(uint32_t* align_bytes) {
  const Token at = token_;
  uint64_t value = 0;
  if (!expect_integer(Limits::kAlignBytes, "an alignment", &value)) return false;
  if (!std::has_single_bit(value)) return fail_at(at, "a power of two as alignment");
  *align_bytes = uint32_t(value);
  return true;
}

/// `.attribute(.managed)`, `.attribute(.unified(a, b))`: skipped.
bool Parser::attribute() {
  if (!expect('(')) return false;
  for (int depth = 1; depth > 0; advance()) {
    if (token_.is('(')) ++depth;
    if (token_.is(')')) --depth;
    if (token_.kind == Token::Kind::kEnd || token_.kind == Token::Kind::kBad) {
      return fail("')' after the attribute");
    }
  }
  return true;
}

/// `[4][]`: only the first extent may be left out, and reads 0.
bool Parser::dimensions(std::vector<uint64_t>* extents) {
  while (accept('[')) {
    if (extents->size() == Limits::kDimensions) return fail("fewer array dimensions");
    uint64_t extent = 0;
    if (!token_.is(']') || !extents->empty()) {
      const Token at = token_;
      Constant value;
      if (!constant(&value)) return false;
      extent = value.bits;
      if (value.kind != Operand::ImmediateKind::kInteger || extent > Limits::kVariableBytes) {
        return fail_at(at, "an array extent of at most 2^36");
      }
    }
    extents->push_back(extent);
    if (!expect(']')) return false;
  }
  return true;
}

bool Parser::array_bytes(const DeclarationHead& head, const std::vector<uint64_t>& extents,
                         const Token& at, uint64_t* bytes) {
  uint64_t total = uint64_t{type_bytes(head.type)} * head.lanes;
  for (uint64_t extent : extents) {
    if (extent != 0 && total > Limits::kVariableBytes / extent) {
      return fail_at(at, "an array of at most 2^36 bytes");
    }
    total *= extent;
  }
  *bytes = total;
  return true;
}

bool Parser::variables(const DeclarationHead& head, std::vector<Variable>* into) {
  do {
    if (!variable(head, into)) return false;
  } while (accept(','));
  return expect(';');
}

bool Parser::variable(const DeclarationHead& head, std::vector<Variable>* into) {
  const Token name = token_;
  std::string_view text;
  if (!expect_name("a variable name", &text)) return false;
  std::vector<uint64_t> extents;
  if (!dimensions(&extents)) return false;
  Variable variable;
  variable.space = head.space;
  variable.is_extern = head.is_extern;
  variable.where = where_;
  variable.align_bytes = std::max({head.align_bytes, type_bytes(head.type) * head.lanes, 1u});
  if (head.align_bytes != 0) variable.align_bytes = head.align_bytes;
  if (!array_bytes(head, extents, name, &variable.size_bytes)) return false;
  size_t index = 0;
  if (!declare_variable(std::move(variable), name, into, &index)) return false;
  if (!accept('=')) return true;
  if (head.is_extern || (head.space != Space::kGlobal && head.space != Space::kConst)) {
    return fail_at(name, "an initial value only for .global and .const variables");
  }
  return initial_value(head, extents, &(*into)[index]);
}

/// Binds the name first, so that an initial value may point to its own variable.
bool Parser::declare_variable(Variable variable, const Token& name, std::vector<Variable>* into,
                              size_t* index) {
  const bool is_module = into == &module_.variables;
  if (is_module) {
    const Binding* known = names_.find(name.text);
    const bool declared = known && known->symbol.kind == SymbolRef::Kind::kModuleVariable;
    if (declared && ((*into)[size_t(known->symbol.index)].is_extern || variable.is_extern)) {
      *index = size_t(known->symbol.index);
      variable.name = std::string(name.text);
      if (!variable.is_extern) (*into)[*index] = std::move(variable);
      return true;
    }
  }
  Binding binding{.kind = Binding::Kind::kSymbol, .unique_name = name.text};
  const uint32_t uses = is_module ? 1 : ++variable_uses_[name.text];
  if (uses > 1) {
    binding.unique_name =
        module_.names.emplace_back(std::string(name.text) + "#" + std::to_string(uses));
  }
  *index = into->size();
  binding.symbol.kind =
      is_module ? SymbolRef::Kind::kModuleVariable : SymbolRef::Kind::kFunctionVariable;
  binding.symbol.index = int32_t(*index);
  if (!names_.add(name.text, binding)) return fail_at(name, "a name not yet declared in its scope");
  variable.name = std::string(binding.unique_name);
  into->push_back(std::move(variable));
  return true;
}

}  // namespace kv::simt::ptx
