// Loads, stores, atomics, addresses.
#include <algorithm>

#include "harness/simt/exec/atomic.h"
#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/lower/lowerer.h"
#include "harness/simt/memory/layout.h"

namespace kv::simt {

using ptx::Operand, ptx::Space;

namespace {

struct SpaceName {
  std::string_view name;
  Space space;
};
constexpr SpaceName kSpaces[] = {
    {"global", Space::kGlobal},      {"shared", Space::kShared},
    {"shared::cta", Space::kShared}, {"local", Space::kLocal},
    {"param", Space::kParam},        {"const", Space::kConst},
    {"param::entry", Space::kParam}, {"param::func", Space::kParam},
};

const char* form_name(Space space) {
  switch (space) {
    case Space::kShared:
      return "shared";
    case Space::kLocal:
      return "local";
    case Space::kParam:
      return "param";
    case Space::kGeneric:
      return "generic";
    default:
      return "global";
  }
}

/// Hints and qualifiers of loads and stores that change nothing here.
bool harmless(std::string_view m) {
  static constexpr std::string_view kPlain[] = {"nc",  "ca",  "cg",      "cs",   "lu",
                                                "cv",  "wb",  "wt",      "weak", "mmio",
                                                "cta", "gpu", "cluster", "sys"};
  static constexpr std::string_view kHints[] = {"L1::evict_normal", "L1::evict_unchanged",
                                                "L1::evict_first",  "L1::evict_last",
                                                "L1::no_allocate",  "L2::evict_normal",
                                                "L2::evict_first",  "L2::evict_last",
                                                "L2::64B",          "L2::128B",
                                                "L2::256B",         "L2::cache_hint",
                                                "unified"};
  const auto is = [m](std::string_view name) { return name == m; };
  return std::any_of(std::begin(kPlain), std::end(kPlain), is) ||
         std::any_of(std::begin(kHints), std::end(kHints), is);
}

uint16_t strength(const ptx::Instruction& ins) {
  using namespace access_flags;
  const uint16_t scope = has_modifier(ins, "cta") ? kInBlock : 0;
  if (has_modifier(ins, "acquire")) return kStrong | kAcquire | scope;
  if (has_modifier(ins, "release")) return kStrong | kRelease | scope;
  for (const char* strong : {"volatile", "relaxed", "mmio"}) {
    if (has_modifier(ins, strong)) return kStrong | scope;
  }
  return 0;
}

/// How many elements .v2, .v4 or .v8 asks for, 1 without; nothing if an operand has others.
std::optional<uint32_t> vector_elements(const ptx::Instruction& ins) {
  uint32_t wanted = 1;
  for (const uint32_t n : {2u, 4u, 8u}) {
    if (has_modifier(ins, "v" + std::to_string(n))) wanted = n;
  }
  const size_t address = ins.opcode == "atom" ? 1 : 0;
  for (size_t k = 0; k < ins.operands.size(); ++k) {
    const Operand& o = ins.operands[k];
    if (k == address) continue;
    const size_t got = o.kind == Operand::Kind::kVector ? o.elements.size() : 1;
    if (got != wanted) return std::nullopt;
  }
  return wanted;
}

bool is_signed(ptx::Type t) {
  return t == ptx::Type::kS8 || t == ptx::Type::kS16 || t == ptx::Type::kS32;
}

}  // namespace

Space space_of(const ptx::Instruction& ins) {
  for (const SpaceName& s : kSpaces) {
    if (has_modifier(ins, s.name)) return s.space;
  }
  return Space::kGeneric;
}

Result<Lowerer::Address> Lowerer::address(const Operand& operand, Space space) {
  Address a;
  a.space = space;
  a.offset = operand.immediate;
  if (operand.kind != Operand::Kind::kAddress) {
    return unsupported_form(*current_, "an address operand without brackets");
  }
  if (operand.index >= 0) {
    const char cls = class_of(operand.index);
    if (cls != '2' && cls != '4') return unsupported_form(*current_, "an address of this width");
    a.mode = cls == '4' ? AddressMode::kRegister64 : AddressMode::kRegister32;
    a.base = register_of(operand.index);
  } else if (operand.symbol_ref.kind != ptx::SymbolRef::Kind::kNone) {
    Space own;
    KV_ASSIGN_OR_RETURN(const uint64_t value, symbol_value(operand.symbol_ref, &own));
    a.offset += int64_t(value);
    if (space == Space::kGeneric) a.space = own;
  }
  if (a.mode == AddressMode::kConstant &&
      (a.space == Space::kGlobal || a.space == Space::kConst || a.space == Space::kGeneric)) {
    a.mode = AddressMode::kRegister64;  // of a constant register: the fast paths know registers
    a.base = constant('4', uint64_t(a.offset));
    a.offset = 0;
  }
  return a;
}

void Lowerer::set_address(Step& s, const Address& a) {
  s.proto.mode = uint8_t(a.mode);
  s.proto.imm = a.offset;
  s.proto.space = uint8_t(a.space == Space::kConst ? Space::kGlobal : a.space);
  s.proto.hint = uint16_t(out_.hints++ & 0xff);
}

void Lowerer::note_width(Space space, uint32_t bytes) {
  const bool generic = space == Space::kGeneric;
  if (generic || space == Space::kShared) {
    out_.narrowest_shared = std::min(out_.narrowest_shared, bytes);
    out_.widest_shared = std::max(out_.widest_shared, bytes);
  }
  if (generic || space == Space::kGlobal)
    out_.narrowest_global = std::min(out_.narrowest_global, bytes);
}

Result<void> Lowerer::load(const ptx::Instruction& ins) {
  const auto type = last_type(ins);
  if (!type || ins.operands.size() < 2) return unsupported_form(ins, "");
  for (std::string_view m : ins.modifiers) {
    const bool known = harmless(m) || ptx::type_from_name(m) || m == "v2" || m == "v4" ||
                       m == "volatile" || m == "relaxed" || m == "acquire" ||
                       std::any_of(std::begin(kSpaces), std::end(kSpaces),
                                   [&](const SpaceName& s) { return s.name == m; });
    if (!known) return unsupported_form(ins, "");
  }
  const uint32_t width = ptx::type_bytes(*type);
  KV_ASSIGN_OR_RETURN(const Address a, address(ins.operands[1], space_of(ins)));
  const Operand& to = ins.operands[0];
  const bool vector = to.kind == Operand::Kind::kVector;
  const auto count = vector ? uint32_t(to.elements.size()) : 1;
  const uint32_t declared = has_modifier(ins, "v4") ? 4 : has_modifier(ins, "v2") ? 2 : 1;
  if (width == 0 || width > 8 || count != declared || width * count > 16) {
    return unsupported_form(ins, "");
  }
  using namespace access_flags;
  uint16_t flags = strength(ins);
  std::vector<uint32_t> destinations, extensions;
  const char cls = class_of_bytes(width);
  for (uint32_t k = 0; k < count; ++k) {
    const Operand& o = vector ? to.elements[k] : to;
    if (o.kind == Operand::Kind::kRegister && class_of(o.index) == '4' && cls == '2') {
      destinations.push_back(new_register('2'));  // widened by a step of its own
      extensions.push_back(k);
      if (is_signed(*type) && width < 4) flags |= kSigned;
      continue;
    }
    KV_ASSIGN_OR_RETURN(const uint32_t r, destination(o, cls));
    destinations.push_back(r);
    if (is_signed(*type) && width < 4) {
      flags |= kSigned;
      const ptx::Type own = o.kind == Operand::Kind::kRegister
                                ? here().function->registers[size_t(o.index)].type
                                : ptx::Type::kB32;
      if (ptx::type_bytes(own) == 2) flags |= kTo16;
    }
  }
  note_width(a.space, width * count);
  // A load of which only some bytes are used is no other while all of them are defined.
  const bool plain_form =
      flags == 0 && !(a.space == Space::kParam && a.mode == AddressMode::kConstant &&
                      a.offset >= int64_t(layout::kParamFrame));
  const std::string form = "~ld." + std::string(form_name(a.space)) + "." + std::to_string(width) +
                           "." + std::to_string(count);
  Step& s = step(plain_form ? form.c_str() : "~access");
  s.destinations = destinations;
  if (a.mode != AddressMode::kConstant) s.sources = {a.base};
  set_address(s, a);
  s.proto.width = uint8_t(width);
  s.proto.count = uint8_t(count);
  s.proto.flags = flags;
  s.proto.extra = uint16_t(AccessKind::kLoad);
  for (uint32_t k : extensions) {
    KV_ASSIGN_OR_RETURN(const uint32_t d, destination(vector ? to.elements[k] : to, '4'));
    Step& widen = step(is_signed(*type) ? "cvt.s64.s32" : "cvt.u64.u32");
    widen.sources = {destinations[k]};
    widen.destinations = {d};
  }
  return {};
}

Result<void> Lowerer::store(const ptx::Instruction& ins) {
  const auto type = last_type(ins);
  if (!type || ins.operands.size() < 2) return unsupported_form(ins, "");
  for (std::string_view m : ins.modifiers) {
    const bool known = harmless(m) || ptx::type_from_name(m) || m == "v2" || m == "v4" ||
                       m == "volatile" || m == "relaxed" || m == "release" ||
                       std::any_of(std::begin(kSpaces), std::end(kSpaces),
                                   [&](const SpaceName& s) { return s.name == m; });
    if (!known) return unsupported_form(ins, "");
  }
  const uint32_t width = ptx::type_bytes(*type);
  KV_ASSIGN_OR_RETURN(const Address a, address(ins.operands[0], space_of(ins)));
  const Operand& from = ins.operands[1];
  const bool vector = from.kind == Operand::Kind::kVector;
  const auto count = vector ? uint32_t(from.elements.size()) : 1;
  const uint32_t declared = has_modifier(ins, "v4") ? 4 : has_modifier(ins, "v2") ? 2 : 1;
  if (width == 0 || width > 8 || count != declared || width * count > 16) {
    return unsupported_form(ins, "");
  }
  // The address always has an operand, so that the data start at the same place.
  std::vector<uint32_t> sources = {a.mode == AddressMode::kConstant ? constant('4', 0) : a.base};
  for (uint32_t k = 0; k < count; ++k) {
    KV_ASSIGN_OR_RETURN(const uint32_t r,
                        source(vector ? from.elements[k] : from, class_of_bytes(width)));
    sources.push_back(r);
  }
  note_width(a.space, width * count);
  const uint16_t flags = strength(ins);
  out_.partial_sync |= (flags & access_flags::kStrong) != 0;  // a flag orders some warps only
  const std::string form = "~st." + std::string(form_name(a.space)) + "." + std::to_string(width) +
                           "." + std::to_string(count);
  Step& s = step(flags == 0 && a.space != Space::kParam ? form.c_str() : "~access");
  s.sources = std::move(sources);
  set_address(s, a);
  s.proto.width = uint8_t(width);
  s.proto.count = uint8_t(count);
  s.proto.flags = flags;
  s.proto.extra = uint16_t(AccessKind::kStore);
  return {};
}

/// atom{.sem}{.scope}{.space}.op{.noftz}.type d, [a], b{, c}; red without d.
Result<void> Lowerer::atomic(const ptx::Instruction& ins) {
  struct KindName {
    std::string_view name;
    AtomicKind kind;
  };
  static constexpr KindName kKinds[] = {
      {"add", AtomicKind::kAdd},       {"min", AtomicKind::kMin},
      {"max", AtomicKind::kMax},       {"inc", AtomicKind::kIncrement},
      {"dec", AtomicKind::kDecrement}, {"and", AtomicKind::kAnd},
      {"or", AtomicKind::kOr},         {"xor", AtomicKind::kXor},
      {"exch", AtomicKind::kExchange}, {"cas", AtomicKind::kCompareSwap}};
  const KindName* kind = nullptr;
  for (const KindName& k : kKinds) {
    if (has_modifier(ins, k.name)) kind = &k;
  }
  struct TypeName {
    ptx::Type type;
    AtomicType atomic;
  };
  static constexpr TypeName kTypes[] = {
      {ptx::Type::kU32, AtomicType::kU32},   {ptx::Type::kB32, AtomicType::kU32},
      {ptx::Type::kS32, AtomicType::kS32},   {ptx::Type::kU64, AtomicType::kU64},
      {ptx::Type::kB64, AtomicType::kU64},   {ptx::Type::kS64, AtomicType::kS64},
      {ptx::Type::kF32, AtomicType::kF32},   {ptx::Type::kF64, AtomicType::kF64},
      {ptx::Type::kF16, AtomicType::kF16},   {ptx::Type::kF16x2, AtomicType::kF16x2},
      {ptx::Type::kBf16, AtomicType::kBf16}, {ptx::Type::kBf16x2, AtomicType::kBf16x2},
      {ptx::Type::kB16, AtomicType::kB16}};
  const auto type = last_type(ins);
  const TypeName* row = nullptr;
  for (const TypeName& t : kTypes) {
    if (type && t.type == *type) row = &t;
  }
  const auto elements = vector_elements(ins);
  const size_t first = ins.opcode == "atom" ? 1 : 0;
  const size_t wanted = first + (kind && kind->kind == AtomicKind::kCompareSwap ? 3 : 2);
  if (!kind || !row || !elements || has_modifier(ins, "async") || ins.operands.size() != wanted) {
    return unsupported_form(ins, "");
  }
  for (uint32_t k = 0; k < *elements; ++k) {
    KV_RETURN_IF_ERROR(
        atomic_element(ins, {.mode = uint8_t(uint8_t(kind->kind) << 4 | uint8_t(row->atomic)),
                             .width = uint8_t(ptx::type_bytes(*type)),
                             .index = k}));
  }
  return {};
}

/// One element of a vector, or the only one: a vector is atomic element by element.
Result<void> Lowerer::atomic_element(const ptx::Instruction& ins, const AtomicElement& element) {
  const bool result = ins.opcode == "atom";
  const auto part = [&](const Operand& o) -> const Operand& {
    return o.kind == Operand::Kind::kVector ? o.elements[element.index] : o;
  };
  const char cls = class_of_bytes(element.width);
  const size_t first = result ? 1 : 0;
  KV_ASSIGN_OR_RETURN(Address a, address(ins.operands[first], space_of(ins)));
  a.offset += int64_t{element.index} * element.width;
  std::vector<uint32_t> sources = {a.mode == AddressMode::kConstant ? constant('4', 0) : a.base};
  for (size_t k = first + 1; k < ins.operands.size(); ++k) {
    KV_ASSIGN_OR_RETURN(const uint32_t r, source(part(ins.operands[k]), cls));
    sources.push_back(r);
  }
  std::vector<uint32_t> destinations;
  if (result) {
    KV_ASSIGN_OR_RETURN(const uint32_t d, destination(part(ins.operands[0]), cls));
    destinations.push_back(d);
  }
  note_width(a.space, element.width);
  out_.partial_sync = true;
  Step& s = step("~access");
  s.sources = std::move(sources);
  s.destinations = std::move(destinations);
  set_address(s, a);
  s.proto.target = uint32_t(a.mode);
  s.proto.mode = element.mode;
  s.proto.width = element.width;
  const bool releases = has_modifier(ins, "release") || has_modifier(ins, "acq_rel");
  s.proto.flags = uint16_t(access_flags::kStrong | (releases ? access_flags::kRelease : 0) |
                           (has_modifier(ins, "cta") ? access_flags::kInBlock : 0) |
                           (result ? 0 : access_flags::kNoResult));
  s.proto.extra = uint16_t(AccessKind::kAtomic);
  return {};
}

/// cvta{.to}.space.u64: adds or subtracts the space's window.
Result<void> Lowerer::convert_address(const ptx::Instruction& ins) {
  const Space space = space_of(ins);
  if (ins.operands.size() != 2 || space == Space::kGeneric || !has_modifier(ins, "u64")) {
    return unsupported_form(ins, "");
  }
  KV_ASSIGN_OR_RETURN(const uint32_t a, source(ins.operands[1], '4'));
  KV_ASSIGN_OR_RETURN(const uint32_t d, destination(ins.operands[0], '4'));
  const uint64_t window = space == Space::kShared  ? layout::kSharedWindow
                          : space == Space::kLocal ? layout::kLocalWindow
                          : space == Space::kParam ? layout::kParamWindow
                                                   : 0;
  if (window == 0) {
    Step& s = step("mov.u64");
    s.sources = {a};
    s.destinations = {d};
    return {};
  }
  Step& s = step(has_modifier(ins, "to") ? "sub.u64" : "add.u64");
  s.sources = {a, constant('4', window)};
  s.destinations = {d};
  return {};
}

/// isspacep.space p, a: the address lies in the window. Global is what lies in none.
Result<void> Lowerer::is_space(const ptx::Instruction& ins) {
  const Space space = space_of(ins);
  if (ins.operands.size() != 2 || space == Space::kGeneric) return unsupported_form(ins, "");
  KV_ASSIGN_OR_RETURN(const uint32_t a, source(ins.operands[1], '4'));
  KV_ASSIGN_OR_RETURN(const uint32_t d, destination(ins.operands[0], 'p'));
  if (space == Space::kConst) {  // constant variables are reached through global addresses
    Step& s = step("~mov.pred.constant");
    s.destinations = {d};
    return {};
  }
  if (space == Space::kGlobal) {
    Step& s = step("setp.ge.u64");
    s.sources = {a, constant('4', layout::kHeapBase)};
    s.destinations = {d};
    return {};
  }
  const uint64_t window = space == Space::kShared  ? layout::kSharedWindow
                          : space == Space::kLocal ? layout::kLocalWindow
                                                   : layout::kParamWindow;
  const uint32_t offset = new_register('4');
  Step& s = step("sub.u64");
  s.sources = {a, constant('4', window)};
  s.destinations = {offset};
  Step& t = step("setp.lt.u64");
  t.sources = {offset, constant('4', layout::kWindowBytes)};
  t.destinations = {d};
  return {};
}

}  // namespace kv::simt
