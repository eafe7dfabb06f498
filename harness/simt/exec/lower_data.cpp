// Moves, comparisons, shuffles and matrix operands: opcodes whose operands need arranging.
#include "harness/simt/exec/lowerer.h"

namespace kv::simt {

using ptx::Operand;

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
  s.proto.flags = whole ? 1 : 0;
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
  uint32_t sizes[4] = {};
  for (size_t k = 1; k < 5; ++k) {
    const size_t n = k % 4;  // sources first
    const Operand& o = ins.operands[n];
    const bool vector = o.kind == Operand::Kind::kVector;
    sizes[n] = vector ? uint32_t(o.elements.size()) : 1;
    for (uint32_t e = 0; e < sizes[n]; ++e) {
      const Operand& part = vector ? o.elements[e] : o;
      KV_ASSIGN_OR_RETURN(const uint32_t r, n == 0 ? destination(part, '2') : source(part, '2'));
      (n == 0 ? destinations : sources).push_back(r);
    }
  }
  const size_t results = std::string_view(row->roles).size();
  if (sizes[0] != results || sizes[3] != results || sizes[1] != 2 * sizes[2] ||
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

Result<void> Lowerer::carry(const ptx::Instruction& ins) { return unsupported_form(ins, ""); }

}  // namespace kv::simt
