// Moves, comparisons, shuffles and matrix operands: opcodes whose operands need arranging.
#include "harness/simt/exec/convert_any.h"
#include "harness/simt/exec/lower/lowerer.h"

namespace kv::simt {

using ptx::Operand;

namespace {

/// The high words stay 0.
bool is_clock(std::string_view special) {
  return special == "%clock" || special == "%clock64" || special == "%globaltimer" ||
         special == "%globaltimer_lo";
}

}  // namespace

/// mov: between registers, from addresses and special registers, packing and unpacking.
Result<void> Lowerer::move(const ptx::Instruction& ins) {
  if (ins.operands.size() != 2) return unsupported_form(ins, "expected two operands");
  const Operand& to = ins.operands[0];
  const Operand& from = ins.operands[1];
  const auto type = last_type(ins);
  if (!type) return unsupported_form(ins, "no type");
  const uint32_t bits = ptx::type_bytes(*type) * 8;
  const bool unpacks = to.kind == Operand::Kind::kVector;
  if (unpacks || from.kind == Operand::Kind::kVector) {
    const std::vector<Operand>& parts = unpacks ? to.elements : from.elements;
    const auto count = uint32_t(parts.size());
    if (count == 0 || bits % count) return unsupported_form(ins, "parts of unequal width");
    const std::string form = (unpacks ? "~unpack." : "~pack.") + std::to_string(bits) + "." +
                             std::to_string(bits / count) + "." + std::to_string(count);
    const FormRow* row = find_form(form);
    if (!row) return unsupported_form(ins, "");
    const char whole = class_of_bytes(bits / 8), part = class_of_bytes(bits / 8 / count);
    std::vector<uint32_t> narrow;
    for (const Operand& o : parts) {
      KV_ASSIGN_OR_RETURN(const uint32_t r, unpacks ? destination(o, part) : source(o, part));
      narrow.push_back(r);
    }
    KV_ASSIGN_OR_RETURN(const uint32_t wide,
                        unpacks ? source(from, whole) : destination(to, whole));
    Step& s = step(*row);
    (unpacks ? s.destinations : s.sources) = narrow;
    (unpacks ? s.sources : s.destinations) = {wide};
    return {};
  }
  if (*type == ptx::Type::kPred && from.kind == Operand::Kind::kImmediate) {
    KV_ASSIGN_OR_RETURN(const uint32_t d, destination(to, 'p'));
    Step& s = step("~mov.pred.constant");
    s.proto.mode = from.immediate != 0;
    s.destinations = {d};
    return {};
  }
  if (from.kind == Operand::Kind::kSpecial && is_clock(from.symbol)) {
    const char cls = class_of_bytes(bits / 8);
    KV_ASSIGN_OR_RETURN(const uint32_t d, destination(to, cls));
    Step& s = step(cls == '4' ? "~clock.4" : "~clock.2");
    s.destinations = {d};
    return {};
  }
  return plain(ins);
}

/// setp.cmp{.bool}{.ftz}.type p{|q}, a, b{, {!}c}: p = (a cmp b) bool c, q = !(a cmp b) bool c.
Result<void> Lowerer::set_predicate(const ptx::Instruction& ins) {
  std::string form = "setp", combine;
  for (std::string_view m : ins.modifiers) {
    if (m == "and" || m == "or" || m == "xor") {
      combine = m;
    } else {
      form.append(".").append(m);
    }
  }
  const FormRow* row = find_form(form);
  if (!row || row->roles[0] != 'p') return unsupported_form(ins, "");
  if (row->roles[1] == 'p') return plain(ins, *row);  // a pair of halves: two results
  const bool pair = ins.operands[0].kind == Operand::Kind::kPair;
  if (!pair && combine.empty()) return plain(ins, *row);
  if (ins.operands.size() != (combine.empty() ? 3u : 4u)) {
    return unsupported_form(ins, "operands missing");
  }
  const char cls = row->roles[2];
  KV_ASSIGN_OR_RETURN(const uint32_t a, source(ins.operands[1], cls));
  KV_ASSIGN_OR_RETURN(const uint32_t b, source(ins.operands[2], cls));
  uint32_t c = 0;
  if (!combine.empty()) {
    KV_ASSIGN_OR_RETURN(c, source(ins.operands[3], 'p'));
  }
  const uint32_t result = new_register('p');
  Step& s = step(*row);
  s.destinations = {result};
  s.sources = {a, b};
  const Operand* targets[2] = {pair ? &ins.operands[0].elements[0] : &ins.operands[0],
                               pair ? &ins.operands[0].elements[1] : nullptr};
  // c may be one of the destinations: results are made first and moved at the end.
  uint32_t made[2] = {};
  for (int k = 0; k < 2 && targets[k]; ++k) {
    uint32_t value = result;
    if (k == 1) {
      Step& negate = step("not.pred");
      value = new_register('p');
      negate.sources = {result};
      negate.destinations = {value};
    }
    if (!combine.empty()) {
      const uint32_t combined = new_register('p');
      Step& both = step((combine + ".pred").c_str());
      both.sources = {value, c};
      both.destinations = {combined};
      value = combined;
    }
    made[k] = value;
  }
  for (int k = 0; k < 2 && targets[k]; ++k) {
    if (targets[k]->kind == Operand::Kind::kDiscard) continue;
    KV_ASSIGN_OR_RETURN(const uint32_t d, destination(*targets[k], 'p'));
    Step& copy = step("mov.pred");
    copy.sources = {made[k]};
    copy.destinations = {d};
  }
  return {};
}

/// shfl.sync.mode.b32 d{|p}, a, b, c, membermask.
Result<void> Lowerer::shuffle(const ptx::Instruction& ins) {
  static constexpr std::string_view kModes[] = {"bfly", "idx", "down", "up"};
  if (!has_modifier(ins, "sync") || ins.operands.size() != 5) return unsupported_form(ins, "");
  const bool pair = ins.operands[0].kind == Operand::Kind::kPair;
  std::vector<uint32_t> sources;
  for (size_t k = 1; k < 5; ++k) {
    KV_ASSIGN_OR_RETURN(const uint32_t r, source(ins.operands[k], '2'));
    sources.push_back(r);
  }
  const Operand& to = pair ? ins.operands[0].elements[0] : ins.operands[0];
  KV_ASSIGN_OR_RETURN(const uint32_t d, destination(to, '2'));
  std::vector<uint32_t> destinations = {d};
  if (pair) {
    KV_ASSIGN_OR_RETURN(const uint32_t p, destination(ins.operands[0].elements[1], 'p'));
    destinations.push_back(p);
  }
  uint8_t mode = 4;
  for (uint8_t k = 0; k < 4; ++k) {
    if (has_modifier(ins, kModes[k])) mode = k;
  }
  if (mode == 4) return unsupported_form(ins, "");
  const VirtualRegister& by = out_.registers[sources[1]];
  const VirtualRegister& clamp = out_.registers[sources[2]];
  const VirtualRegister& mask = out_.registers[sources[3]];
  const bool whole = by.constant && clamp.constant && mask.constant &&
                     (clamp.value & 0x1f1f) == 0x1f && uint32_t(mask.value) == ~0u;
  Step& s = step(pair ? "~shfl.p" : "~shfl");
  s.proto.mode = mode;
  s.proto.flags = uint16_t(whole ? 1 : mask.constant ? 2 : 0);
  s.synchronises = true;
  s.destinations = std::move(destinations);
  s.sources = std::move(sources);
  return {};
}

/// mma: {d}, {a}, {b}, {c}; a register alone stands for a vector of one.
Result<void> Lowerer::multiply_matrices(const ptx::Instruction& ins) {
  const FormRow* row = find_form(form_text(ins));
  if (!row || ins.operands.size() != 4) return unsupported_form(ins, "");
  std::vector<uint32_t> destinations, sources;
  const char cls = row->roles[0];
  uint32_t sizes[4] = {};
  for (size_t k = 1; k < 5; ++k) {
    const size_t n = k % 4;  // sources first
    const Operand& o = ins.operands[n];
    const bool vector = o.kind == Operand::Kind::kVector;
    sizes[n] = vector ? uint32_t(o.elements.size()) : 1;
    for (uint32_t e = 0; e < sizes[n]; ++e) {
      const Operand& part = vector ? o.elements[e] : o;
      KV_ASSIGN_OR_RETURN(const uint32_t r, n == 0 ? destination(part, cls) : source(part, cls));
      (n == 0 ? destinations : sources).push_back(r);
    }
  }
  const size_t results = std::string_view(row->roles).size();
  if (sizes[0] != results || sizes[3] != results ||
      (sizes[1] != 2 * sizes[2] && sizes[1] != sizes[2]) ||
      destinations.size() + sources.size() > Ins::kOperands) {
    return unsupported_form(ins, "fragments of another size");
  }
  Step& s = step(*row);
  s.synchronises = true;
  s.proto.count = uint8_t(sizes[1]);
  s.proto.width = uint8_t(sizes[2]);
  s.destinations = std::move(destinations);
  s.sources = std::move(sources);
  return {};
}

Result<void> Lowerer::logic3(const ptx::Instruction& ins) {
  if (form_text(ins) != "lop3.b32" || ins.operands.size() != 5 ||
      ins.operands[4].kind != Operand::Kind::kImmediate) {
    return unsupported_form(ins, "");
  }
  std::vector<uint32_t> sources;
  for (size_t k = 1; k < 4; ++k) {
    KV_ASSIGN_OR_RETURN(const uint32_t r, source(ins.operands[k], '2'));
    sources.push_back(r);
  }
  KV_ASSIGN_OR_RETURN(const uint32_t d, destination(ins.operands[0], '2'));
  Step& s = step("~lop3");
  s.proto.mode = uint8_t(ins.operands[4].immediate);
  s.sources = std::move(sources);
  s.destinations = {d};
  return {};
}

/// match.all.sync writes a mask and a predicate.
Result<void> Lowerer::match_lanes(const ptx::Instruction& ins) {
  if (!has_modifier(ins, "all")) return synchronous(ins);
  const bool wide = has_modifier(ins, "b64");
  if (ins.operands.size() != 3) return unsupported_form(ins, "");
  const bool pair = ins.operands[0].kind == Operand::Kind::kPair;
  KV_ASSIGN_OR_RETURN(const uint32_t a, source(ins.operands[1], wide ? '4' : '2'));
  KV_ASSIGN_OR_RETURN(const uint32_t mask, source(ins.operands[2], '2'));
  const Operand& to = pair ? ins.operands[0].elements[0] : ins.operands[0];
  KV_ASSIGN_OR_RETURN(const uint32_t d, destination(to, '2'));
  uint32_t p = 0;
  if (pair) {
    KV_ASSIGN_OR_RETURN(p, destination(ins.operands[0].elements[1], 'p'));
  } else {
    p = new_register('p');
  }
  Step& s = step(wide ? "~match.all.b64" : "~match.all.b32");
  s.synchronises = true;
  s.destinations = {d, p};
  s.sources = {a, mask};
  return {};
}

/// elect.sync d|p, membermask.
Result<void> Lowerer::elect_lane(const ptx::Instruction& ins) {
  if (ins.operands.size() != 2 || ins.operands[0].kind != Operand::Kind::kPair) {
    return unsupported_form(ins, "");
  }
  KV_ASSIGN_OR_RETURN(const uint32_t mask, source(ins.operands[1], '2'));
  KV_ASSIGN_OR_RETURN(const uint32_t d, destination(ins.operands[0].elements[0], '2'));
  KV_ASSIGN_OR_RETURN(const uint32_t p, destination(ins.operands[0].elements[1], 'p'));
  Step& s = step("~elect");
  s.synchronises = true;
  s.destinations = {d, p};
  s.sources = {mask};
  return {};
}

/// Plain forms that wait for lanes.
Result<void> Lowerer::synchronous(const ptx::Instruction& ins) {
  KV_RETURN_IF_ERROR(plain(ins));
  out_.steps.back().synchronises = true;
  return {};
}

/// cvt: a row of the table if there is one, else convert_any. A destination register wider than its
/// type gets the sign (or zeros) extended.
Result<void> Lowerer::convert(const ptx::Instruction& ins) {
  std::vector<ptx::Type> types;
  uint16_t flags = 0;
  bool known = true;
  for (std::string_view m : ins.modifiers) {
    struct Row {
      std::string_view name;
      uint16_t flag;
    };
    using namespace convert_flags;
    static constexpr Row kRows[] = {{"rn", 0},
                                    {"rz", 1},
                                    {"rm", 2},
                                    {"rp", 3},
                                    {"rna", 4},
                                    {"rni", kIntegral},
                                    {"rzi", kIntegral | 1},
                                    {"rmi", kIntegral | 2},
                                    {"rpi", kIntegral | 3},
                                    {"ftz", kFtz},
                                    {"sat", kSat},
                                    {"relu", kRelu},
                                    {"satfinite", kFinite}};
    if (const auto type = ptx::type_from_name(m)) {
      types.push_back(*type);
      continue;
    }
    bool found = false;
    for (const Row& row : kRows) {
      if (row.name == m) flags |= row.flag, found = true;
    }
    known &= found;
  }
  const bool narrow_sign =
      !types.empty() && (types[0] == ptx::Type::kS8 || types[0] == ptx::Type::kS16);
  const Operand* to = ins.operands.empty() ? nullptr : &ins.operands[0];
  const uint32_t own = to && to->kind == Operand::Kind::kRegister
                           ? ptx::type_bytes(here().function->registers[size_t(to->index)].type)
                           : 4;
  const FormRow* row = find_form(form_text(ins));
  // The rows leave 8 and 16 bits with zeros above; a wider register wants the sign. cvt.pack fills
  // its register.
  if (row && !(known && narrow_sign && own != 2)) return plain(ins, *row);
  if (!known || types.size() != 2 || !convertible(types[0], types[1])) {
    return unsupported_form(ins, "");
  }
  const bool pair = (types[0] == ptx::Type::kF16x2 || types[0] == ptx::Type::kBf16x2 ||
                     types[0] == ptx::Type::kE4m3x2 || types[0] == ptx::Type::kE5m2x2) &&
                    types[1] == ptx::Type::kF32;
  if (ins.operands.size() != (pair ? 3u : 2u)) return unsupported_form(ins, "");
  const char from_class = class_of_bytes(ptx::type_bytes(types[1]));
  const char to_class = own == 8 ? '4' : '2';
  std::vector<uint32_t> sources;
  for (size_t k = 1; k < ins.operands.size(); ++k) {
    KV_ASSIGN_OR_RETURN(const uint32_t r, source(ins.operands[k], from_class));
    sources.push_back(r);
  }
  KV_ASSIGN_OR_RETURN(const uint32_t d, destination(*to, to_class));
  Step& s = step("~nothing");
  s.run = convert_any;
  s.taint = Taint::kAll;
  s.destinations = {d};
  s.sources = std::move(sources);
  s.proto.mode = uint8_t(types[0]);
  s.proto.extra = uint16_t(types[1]);
  s.proto.flags = flags;
  s.proto.width = uint8_t(own);
  s.proto.count = from_class == '4' ? 8 : 4;
  return {};
}

/// createpolicy: hints for the L2 cache are taken and forgotten.
Result<void> Lowerer::create_policy(const ptx::Instruction& ins) {
  if (ins.operands.empty()) return unsupported_form(ins, "");
  KV_ASSIGN_OR_RETURN(const uint32_t d, destination(ins.operands[0], '4'));
  Step& s = step("mov.u64");
  s.sources = {constant('4', 0)};
  s.destinations = {d};
  return {};
}

/// Extended precision: add.cc, addc{.cc}, sub.cc, subc{.cc}, mad{c}.{lo,hi}{.cc}. The condition
/// code is a register of its own that holds 0 or 1.
Result<void> Lowerer::carry(const ptx::Instruction& ins) {
  const bool multiplies = ins.opcode == "mad" || ins.opcode == "madc";
  const bool takes = ins.opcode.back() == 'c';
  const auto type = last_type(ins);
  if (!type || ins.operands.size() != (multiplies ? 4u : 3u)) return unsupported_form(ins, "");
  const uint32_t bytes = ptx::type_bytes(*type);
  const char cls = class_of_bytes(bytes);
  if (bytes < 4) return unsupported_form(ins, "");
  if (carry_flag_ < 0) carry_flag_ = int32_t(new_register('2'));
  const auto flag = uint32_t(carry_flag_);
  std::vector<uint32_t> sources;
  for (size_t k = 1; k < ins.operands.size(); ++k) {
    KV_ASSIGN_OR_RETURN(const uint32_t r, source(ins.operands[k], cls));
    sources.push_back(r);
  }
  if (multiplies) {
    const uint32_t product = new_register(cls);
    const std::string form = std::string("mul.") + (has_modifier(ins, "hi") ? "hi." : "lo.") +
                             std::string(ins.modifiers.back());
    const FormRow* row = find_form(form);
    if (!row) return unsupported_form(ins, "");
    Step& s = step(*row);
    s.sources = {sources[0], sources[1]};
    s.destinations = {product};
    sources = {product, sources[2]};
  }
  KV_ASSIGN_OR_RETURN(const uint32_t d, destination(ins.operands[0], cls));
  const bool subtracts = ins.opcode == "sub" || ins.opcode == "subc";
  const std::string form =
      std::string(subtracts ? "~subc" : "~addc") + (cls == '4' ? ".64" : ".32");
  Step& s = step(form.c_str());
  s.sources = {sources[0], sources[1], takes ? flag : constant('2', 0)};
  s.destinations = {d, has_modifier(ins, "cc") ? flag : new_register('2')};
  return {};
}

}  // namespace kv::simt
