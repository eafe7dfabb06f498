#include "harness/simt/mutate/operators.h"

#include <algorithm>
#include <utility>

namespace kv::simt::mutate {
namespace {

using ptx::Instruction;
using ptx::Operand;

struct Exchange {
  std::string_view from, to;
};

bool any_of(std::string_view opcode, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), opcode) != list.end();
}

void set_opcode(Instruction& ins, std::string_view opcode) { ins.opcode = opcode; }

bool is_integer(const Operand& o) {
  return o.kind == Operand::Kind::kImmediate &&
         o.immediate_kind == Operand::ImmediateKind::kInteger;
}

bool same_register(const Operand& a, const Operand& b) {
  return a.kind == b.kind && a.index == b.index && a.kind == Operand::Kind::kRegister;
}

void drop(Instruction& ins) {
  set_opcode(ins, kNothing);
  ins.modifiers.clear();
  ins.operands.clear();
  ins.guard = -1;
}

/// Bytes that one lane moves; a change of an address by them keeps it aligned.
int64_t access_bytes(const Site& site) {
  if (any_of(site.ins.opcode, {"cp", "ldmatrix", "stmatrix"})) return 16;
  const int64_t elements = site.has("v4") ? 4 : site.has("v2") ? 2 : 1;
  return elements * std::max<int64_t>(1, type_bytes(site.last_type()));
}

/// Operand `n` plus and minus `unit`.
void step_operand(const Site& site, Operator op, size_t n, int64_t unit) {
  for (const int64_t sign : {1, -1}) {
    const uint32_t variant = uint32_t(2 * n + (sign < 0));
    site.add(op, variant).operands[n].immediate += sign * unit;
  }
}

}  // namespace

void change_comparison(const Site& site) {
  static constexpr Exchange kBoundary[] = {
      {"lt", "le"},   {"le", "lt"},   {"gt", "ge"},   {"ge", "gt"},   {"lo", "ls"},
      {"ls", "lo"},   {"hi", "hs"},   {"hs", "hi"},   {"ltu", "leu"}, {"leu", "ltu"},
      {"gtu", "geu"}, {"geu", "gtu"}, {"min", "max"}, {"max", "min"}};
  static constexpr Exchange kOpposite[] = {
      {"lt", "ge"}, {"le", "gt"}, {"gt", "le"},   {"ge", "lt"},   {"lo", "hs"},   {"ls", "hi"},
      {"hi", "ls"}, {"hs", "lo"}, {"ltu", "geu"}, {"leu", "gtu"}, {"gtu", "leu"}, {"geu", "ltu"},
      {"eq", "ne"}, {"ne", "eq"}, {"equ", "neu"}, {"neu", "equ"}, {"num", "nan"}, {"nan", "num"}};
  const auto exchange = [&](const auto& table, uint32_t variant, size_t m) {
    for (const Exchange& e : table) {
      if (e.from == site.ins.modifiers[m])
        site.add(Operator::kCompare, variant).modifiers[m] = e.to;
    }
  };
  if (any_of(site.ins.opcode, {"setp", "set"}) && !site.ins.modifiers.empty()) {
    exchange(kBoundary, 0, 0);
    exchange(kOpposite, 1, 0);
  }
  if (site.ins.opcode == "min") set_opcode(site.add(Operator::kCompare, 0), "max");
  if (site.ins.opcode == "max") set_opcode(site.add(Operator::kCompare, 0), "min");
}

void change_constants(const Site& site) {
  const std::string_view opcode = site.ins.opcode;
  const bool arithmetic = any_of(opcode, {"add", "sub", "mul", "mad", "div", "rem", "min", "max",
                                          "setp", "set", "selp", "mov", "and", "or", "xor"});
  const bool memory =
      any_of(opcode, {"ld", "st", "atom", "red", "ldmatrix", "stmatrix"}) && !site.has("param");
  const bool copy = opcode == "cp" && !site.has("wait_group");
  const bool is_predicate = site.last_type() == ptx::Type::kPred;
  for (size_t n = 0; n < site.ins.operands.size(); ++n) {
    const Operand& o = site.ins.operands[n];
    if (arithmetic && !is_predicate && n > 0 && is_integer(o)) {
      step_operand(site, Operator::kConstant, n, 1);
    }
    if ((memory || copy) && o.kind == Operand::Kind::kAddress) {
      step_operand(site, Operator::kConstant, n, access_bytes(site));
    }
  }
}

void swap_operands(const Site& site) {
  const Instruction& ins = site.ins;
  const auto exchange = [&](size_t a, size_t b) {
    if (b >= ins.operands.size() || same_register(ins.operands[a], ins.operands[b])) return;
    Instruction& changed = site.add(Operator::kSwap, 0);
    std::swap(changed.operands[a], changed.operands[b]);
  };
  if (any_of(ins.opcode, {"sub", "div", "rem", "selp", "prmt"})) exchange(1, 2);
  if (ins.opcode == "cvt" && ins.operands.size() == 3) exchange(1, 2);
  if (ins.opcode == "fma" || (ins.opcode == "mad" && !site.has("wide"))) exchange(1, 3);
  if (!any_of(ins.opcode, {"mov", "ld", "st", "mma", "ldmatrix", "stmatrix"})) return;
  for (size_t n = 0; n < ins.operands.size(); ++n) {
    const Operand& o = ins.operands[n];
    if (o.kind != Operand::Kind::kVector || o.elements.size() < 2) continue;
    if (same_register(o.elements[0], o.elements[1])) continue;
    Operand& changed = site.add(Operator::kSwap, uint32_t(n + 1)).operands[n];
    std::swap(changed.elements[0], changed.elements[1]);
  }
}

void drop_synchronisation(const Site& site) {
  const Instruction& ins = site.ins;
  if (any_of(ins.opcode, {"bar", "barrier"}) && !site.has("red")) {
    drop(site.add(Operator::kBarrier, 0));
  }
  if (any_of(ins.opcode, {"membar", "fence"})) drop(site.add(Operator::kFence, 0));
  if (ins.opcode != "cp") return;
  const bool wait = site.has("wait_group") || site.has("wait_all");
  if (wait || site.has("commit_group")) drop(site.add(Operator::kWait, 0));
  if (site.has("wait_group") && ins.operands.size() == 1 && is_integer(ins.operands[0])) {
    ++site.add(Operator::kWait, 1).operands[0].immediate;
  }
}

void exchange_add_and_sub(const Site& site) {
  if (site.has("cc")) return;
  if (site.ins.opcode == "add") set_opcode(site.add(Operator::kAddSub, 0), "sub");
  if (site.ins.opcode == "sub") set_opcode(site.add(Operator::kAddSub, 0), "add");
}

void change_shift(const Site& site) {
  const Instruction& ins = site.ins;
  const auto step = [&](size_t n) {
    if (n < ins.operands.size() && is_integer(ins.operands[n])) {
      step_operand(site, Operator::kShift, n, 1);
    }
  };
  if (any_of(ins.opcode, {"shl", "shr"})) step(2);
  if (ins.opcode == "shf") step(3);
  if (ins.opcode == "bfe") step(2), step(3);
  if (ins.opcode == "bfi") step(3), step(4);
}

void change_guard(const Site& site) {
  if (site.ins.guard < 0) return;
  Instruction& opposite = site.add(Operator::kNegate, 0);
  opposite.guard_negated = !opposite.guard_negated;
  site.add(Operator::kGuard, 0).guard = -1;
  if (site.ins.opcode == "bra") drop(site.add(Operator::kGuard, 1));
}

/// shfl.sync.mode.b32 d|p, a, b, c, membermask
void change_lane(const Site& site) {
  static constexpr Exchange kModes[] = {
      {"bfly", "down"}, {"down", "up"}, {"up", "down"}, {"idx", "bfly"}};
  if (site.ins.opcode != "shfl" || site.ins.operands.size() < 3) return;
  for (size_t m = 0; m < site.ins.modifiers.size(); ++m) {
    for (const Exchange& e : kModes) {
      if (e.from == site.ins.modifiers[m]) site.add(Operator::kLane, 0).modifiers[m] = e.to;
    }
  }
  const Operand& lane = site.ins.operands[2];
  if (!is_integer(lane)) return;
  site.add(Operator::kLane, 1).operands[2].immediate = (lane.immediate + 1) & 31;
  site.add(Operator::kLane, 2).operands[2].immediate = lane.immediate * 2 & 31;
}

void narrow_result(const Site& site) {
  const std::string_view opcode = site.ins.opcode;
  const uint32_t bytes = type_bytes(site.last_type());
  const bool wide = opcode == "mul" && site.has("wide") && bytes == 4;
  const bool whole = (opcode == "mul" || opcode == "mad") && site.has("lo") && bytes == 8;
  const bool shift = opcode == "shl" && bytes == 8;
  if (wide || whole || shift) site.add(Operator::kNarrow, 0).cut_to_32_bits = true;
}

}  // namespace kv::simt::mutate
