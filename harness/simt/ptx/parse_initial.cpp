// Initial values of variables, PTX ISA 9.0 section 5.4.4.
#include <bit>

#include "harness/simt/ptx/parser.h"

namespace kv::simt::ptx {
namespace {

using Immediate = Operand::ImmediateKind;

bool is_floating(Type type) { return type == Type::kF32 || type == Type::kF64; }

}  // namespace

bool Parser::initial_value(const DeclarationHead& head, const std::vector<uint64_t>& extents,
                           Variable* variable) {
  Initial initial;
  initial.type = head.type;
  initial.element_bytes = type_bytes(head.type);
  std::vector<uint64_t> inner(extents);
  if (head.lanes > 1) inner.push_back(head.lanes);
  initial.strides.assign(inner.size(), initial.element_bytes);
  for (size_t i = inner.size(); i-- > 1;) initial.strides[i - 1] = initial.strides[i] * inner[i];
  const bool is_open = !extents.empty() && extents[0] == 0;
  initial.total_bytes = is_open ? UINT64_MAX : variable->size_bytes;
  if (inner.empty()) {
    if (!initial_element(initial, 0)) return false;
  } else {
    if (!token_.is('{')) return fail("'{' before an array's initial values");
    if (!initial_list(initial, 0, 0, initial.total_bytes)) return false;
  }
  if (is_open) {
    const uint64_t stride = initial.strides.empty() ? 1 : initial.strides[0];
    variable->size_bytes = stride == 0 ? 0 : (initial.end + stride - 1) / stride * stride;
  }
  variable->initial = std::move(initial.bytes);
  variable->relocations = std::move(initial.relocations);
  return true;
}

/// One level of braces, filling [begin, end). A level may hold elements or deeper levels.
bool Parser::initial_list(Initial& initial, size_t level, uint64_t begin, uint64_t end) {
  if (!expect('{')) return false;
  uint64_t offset = begin;
  if (accept('}')) return true;
  do {
    if (token_.is('{')) {
      if (level + 1 >= initial.strides.size()) return fail("fewer nested braces");
      const uint64_t stride = initial.strides[level];
      if (end - offset < stride) return fail("fewer initial values");
      if (!initial_list(initial, level + 1, offset, offset + stride)) return false;
      offset += stride;
      initial.end = std::max(initial.end, offset);
    } else {
      if (end - offset < initial.element_bytes) return fail("fewer initial values");
      if (!initial_element(initial, offset)) return false;
      offset += initial.element_bytes;
    }
  } while (accept(','));
  return expect('}');
}

bool Parser::reserve_initial(Initial& initial, uint64_t offset, const Token& at) {
  const uint64_t end = offset + initial.element_bytes;
  if (end > initial.bytes.size()) {
    initial_total_ += end - initial.bytes.size();
    if (end > Limits::kInitialBytes || initial_total_ > Limits::kInitialBytes) {
      return fail_at(at, "at most 256 MiB of initial values");
    }
    initial.bytes.resize(end);
  }
  initial.end = std::max(initial.end, end);
  return true;
}

bool Parser::initial_element(Initial& initial, uint64_t offset) {
  const Token at = token_;
  if (!reserve_initial(initial, offset, at)) return false;
  if (!at.is_word() || at.text == "WARP_SZ") {
    Constant value;
    if (!constant(&value)) return false;
    if (token_.is('(')) return initial_mask(initial, offset, at, value.bits);
    return initial_number(initial, offset, at, value);
  }
  if (initial.element_bytes < 4 || is_floating(initial.type)) {
    return fail("a number: an address needs 32 or 64 bits");
  }
  Variable::Relocation relocation;
  relocation.offset = offset;
  relocation.bytes = initial.element_bytes;
  if (!symbol_address(&relocation)) return false;
  initial.relocations.push_back(std::move(relocation));
  return true;
}

bool Parser::initial_number(Initial& initial, uint64_t offset, const Token& at, Constant value) {
  uint64_t bits = value.bits;
  if (is_floating(initial.type) && value.kind == Immediate::kInteger && bits != 0) {
    return fail_at(at, "a floating-point initial value");
  }
  if (!is_floating(initial.type) && value.kind != Immediate::kInteger) {
    const bool same_width = initial.element_bytes == (value.kind == Immediate::kF32 ? 4 : 8);
    if (!same_width) return fail_at(at, "an integer initial value");
  }
  if (initial.type == Type::kF32 && value.kind == Immediate::kF64) {
    bits = std::bit_cast<uint32_t>(float(std::bit_cast<double>(bits)));
  }
  if (initial.type == Type::kF64 && value.kind == Immediate::kF32) {
    bits = std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(bits))));
  }
  for (uint32_t i = 0; i < initial.element_bytes; ++i) {
    initial.bytes[offset + i] = i < 8 ? uint8_t(bits >> (8 * i)) : 0;
  }
  return true;
}

/// `generic(symbol) + 8`, `symbol + 8`.
bool Parser::symbol_address(Variable::Relocation* relocation) {
  relocation->generic = accept_word("generic");
  if (relocation->generic && !expect('(')) return false;
  Operand symbol;
  const Token at = token_;
  if (!at.is_word()) return fail("a variable or function");
  if (!resolve_name(at, &symbol)) return false;
  if (symbol.kind != Operand::Kind::kSymbol) return fail("a variable or function");
  advance();
  if (relocation->generic && !expect(')')) return false;
  relocation->symbol = std::string(symbol.symbol);
  relocation->target = symbol.symbol_ref;
  return (!token_.is('+') && !token_.is('-')) || addend(&relocation->addend);
}

/// `0xFF00(generic(symbol))`: one byte of an address, in packed structs. nvcc writes the eight in
/// order; they are joined to one relocation.
bool Parser::initial_mask(Initial& initial, uint64_t offset, const Token& at, uint64_t mask) {
  Variable::Relocation relocation;
  relocation.offset = offset;
  relocation.bytes = 1;
  if (!expect('(') || !symbol_address(&relocation) || !expect(')')) return false;
  if (initial.element_bytes != 1) return fail_at(at, "a masked address in an array of bytes only");
  if (mask == 0xff) {
    initial.relocations.push_back(std::move(relocation));
    return true;
  }
  Variable::Relocation* last = initial.relocations.empty() ? nullptr : &initial.relocations.back();
  const bool continues = last && last->bytes < 8 && offset == last->offset + last->bytes &&
                         mask == uint64_t{0xff} << (8 * last->bytes) &&
                         last->symbol == relocation.symbol && last->addend == relocation.addend &&
                         last->generic == relocation.generic;
  if (!continues) return fail_at(at, "the bytes of a masked address in ascending order");
  ++last->bytes;
  return true;
}

}  // namespace kv::simt::ptx
