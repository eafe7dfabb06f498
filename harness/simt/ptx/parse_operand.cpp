#include <algorithm>
#include <array>

#include "harness/simt/ptx/parser.h"

namespace kv::simt::ptx {
namespace {

/// Special registers without a number or component, PTX ISA 9.0 section 10.
constexpr std::array kSpecial = std::to_array<std::string_view>({
    "%aggr_smem_size",
    "%clock",
    "%clock64",
    "%clock_hi",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%current_graph_exec",
    "%dynamic_smem_size",
    "%globaltimer",
    "%globaltimer_hi",
    "%globaltimer_lo",
    "%gridid",
    "%is_explicit_cluster",
    "%laneid",
    "%lanemask_eq",
    "%lanemask_ge",
    "%lanemask_gt",
    "%lanemask_le",
    "%lanemask_lt",
    "%nsmid",
    "%nwarpid",
    "%smid",
    "%total_smem_size",
    "%warpid",
});
/// Those of three dimensions, used as `%tid.x`.
constexpr std::array kSpecial3 = std::to_array<std::string_view>({
    "%cluster_ctaid",
    "%cluster_nctaid",
    "%clusterid",
    "%ctaid",
    "%nclusterid",
    "%nctaid",
    "%ntid",
    "%tid",
});
static_assert(std::ranges::is_sorted(kSpecial) && std::ranges::is_sorted(kSpecial3));

/// 0..3 for .x .y .z .w (or .r .g .b .a), -1 for anything else.
int component_lane(std::string_view component) {
  if (component.size() != 1) return -1;
  const size_t lane = std::string_view("xyzwrgba").find(component[0]);
  return lane == std::string_view::npos ? -1 : int(lane % 4);
}

bool is_special(std::string_view name) {
  const size_t dot = name.find('.');
  if (dot == name.npos) {
    return std::ranges::binary_search(kSpecial, name) || name.starts_with("%envreg") ||
           name.starts_with("%pm") || name.starts_with("%reserved_smem_offset");
  }
  return component_lane(name.substr(dot + 1)) >= 0 &&
         std::ranges::binary_search(kSpecial3, name.substr(0, dot));
}

}  // namespace

bool Parser::operand(Operand* out) {
  if (token_.is_word()) {
    if (!word_operand(out)) return false;
    return !token_.is('|') || out->kind == Operand::Kind::kImmediate || pair_operand(out);
  }
  if (token_.is('{')) return vector_operand(out);
  if (token_.is('[')) return address_operand(out);
  if (token_.is('!')) {
    const Token at = token_;
    advance();
    if (!token_.is_word()) return fail_at(at, "a constant without '!' or a register after it");
    if (!word_operand(out)) return false;
    if (out->kind != Operand::Kind::kRegister) return fail_at(at, "'!' before a register only");
    out->negated = true;
    return true;
  }
  Constant value;
  if (!constant(&value)) return false;
  out->kind = Operand::Kind::kImmediate;
  out->immediate_kind = value.kind;
  out->immediate = int64_t(value.bits);
  return true;
}

bool Parser::word_operand(Operand* out) {
  if (token_.text == "_") {
    out->kind = Operand::Kind::kDiscard;
    advance();
    return true;
  }
  if (token_.text == "WARP_SZ") {
    Constant value;
    if (!constant(&value)) return false;
    out->immediate = int64_t(value.bits);
    return true;
  }
  if (!resolve_name(token_, out)) return false;
  advance();
  const bool has_addend = out->kind == Operand::Kind::kSymbol && (token_.is('+') || token_.is('-'));
  return !has_addend || addend(&out->immediate);
}

bool Parser::resolve_name(const Token& name, Operand* out) {
  const int32_t index = names_.find_register(name.text);
  if (index >= 0) {
    out->kind = Operand::Kind::kRegister;
    out->index = index;
    return true;
  }
  const Binding* binding = names_.find(name.text);
  if (binding && binding->kind == Binding::Kind::kVectorRegister) {
    out->kind = Operand::Kind::kVector;
    out->elements.resize(binding->count);
    for (uint32_t lane = 0; lane < binding->count; ++lane) {
      out->elements[lane].kind = Operand::Kind::kRegister;
      out->elements[lane].index = binding->index + int32_t(lane);
    }
    return true;
  }
  if (binding && binding->kind == Binding::Kind::kSymbol) return symbol_operand(*binding, out);
  if (is_special(name.text)) {
    out->kind = Operand::Kind::kSpecial;
    out->symbol = name.text;
    return true;
  }
  if (resolve_component(name, out)) return true;
  return fail_at(name, "a declared register, variable, parameter or function");
}

/// `v.x` of a vector register.
bool Parser::resolve_component(const Token& name, Operand* out) {
  const size_t dot = name.text.rfind('.');
  if (dot == name.text.npos) return false;
  const Binding* binding = names_.find(name.text.substr(0, dot));
  const int lane = component_lane(name.text.substr(dot + 1));
  if (!binding || binding->kind != Binding::Kind::kVectorRegister) return false;
  if (lane < 0 || lane >= int(binding->count)) return false;
  out->kind = Operand::Kind::kRegister;
  out->index = binding->index + lane;
  return true;
}

bool Parser::symbol_operand(const Binding& binding, Operand* out) {
  out->kind = Operand::Kind::kSymbol;
  out->symbol = binding.unique_name;
  out->symbol_ref = binding.symbol;
  return true;
}

/// `%p|%q`, the current token being the bar.
bool Parser::pair_operand(Operand* out) {
  const Token at = token_;
  advance();
  Operand second;
  if (!token_.is_word()) return fail("a register after '|'");
  if (!word_operand(&second)) return false;
  const auto is_place = [](const Operand& operand) {
    return operand.kind == Operand::Kind::kRegister || operand.kind == Operand::Kind::kDiscard;
  };
  if (!is_place(*out) || !is_place(second)) return fail_at(at, "registers on both sides of '|'");
  Operand pair;
  pair.kind = Operand::Kind::kPair;
  pair.elements.reserve(2);
  pair.elements.push_back(std::move(*out));
  pair.elements.push_back(std::move(second));
  *out = std::move(pair);
  return true;
}

/// `{%r1, %r2}`: registers, constants, `_`. Vectors do not nest.
bool Parser::vector_operand(Operand* out) {
  advance();
  out->kind = Operand::Kind::kVector;
  out->elements.reserve(4);
  do {
    if (out->elements.size() == Limits::kVectorElements) return fail("fewer vector elements");
    if (token_.is('{') || token_.is('[')) return fail("a register or constant");
    Operand& element = out->elements.emplace_back();
    if (!operand(&element)) return false;
    if (element.kind == Operand::Kind::kVector) return fail("scalar elements in a vector");
  } while (accept(','));
  return expect('}');
}

/// `[base + offset]`, or `[base, {coordinates}]` of tensor instructions.
bool Parser::address_operand(Operand* out) {
  advance();
  if (!address_base(out)) return false;
  while (accept(',')) {
    if (out->elements.size() == Limits::kOperands) return fail("fewer coordinates");
    if (token_.is('[')) return fail("a register, vector or constant");
    if (!operand(&out->elements.emplace_back())) return false;
  }
  return expect(']');
}

bool Parser::address_base(Operand* out) {
  if (!token_.is_word()) {
    Constant value;
    const Token at = token_;
    if (!constant(&value)) return false;
    if (value.kind != Operand::ImmediateKind::kInteger) return fail_at(at, "an integer address");
    out->kind = Operand::Kind::kAddress;
    out->immediate = int64_t(value.bits);
    return true;
  }
  const Token at = token_;
  if (!resolve_name(at, out)) return false;
  if (out->kind != Operand::Kind::kRegister && out->kind != Operand::Kind::kSymbol) {
    return fail_at(at, "a register or variable as address");
  }
  out->kind = Operand::Kind::kAddress;
  advance();
  return (!token_.is('+') && !token_.is('-')) || addend(&out->immediate);
}

/// `+ 8`, `+ -8`, `- 8` after a register or symbol.
bool Parser::addend(int64_t* value) {
  const Token at = token_;
  if (at.is('+')) advance();
  Constant constant_value;
  if (!constant(&constant_value)) return false;
  if (constant_value.kind != Operand::ImmediateKind::kInteger) {
    return fail_at(at, "an integer offset");
  }
  *value = int64_t(constant_value.bits);
  return true;
}

}  // namespace kv::simt::ptx
