#include "harness/simt/ptx/cfg.h"

#include <algorithm>

namespace kv::simt::ptx {
namespace {

bool leaves(const Instruction& instruction) {
  return instruction.opcode == "ret" || instruction.opcode == "exit" ||
         instruction.opcode == "trap";
}

bool branches(const Instruction& instruction) {
  return instruction.opcode == "bra" || instruction.opcode == "brx";
}

/// Calls `visit` with the instruction index of each target.
template <class Visit>
void for_each_target(const Instruction& instruction, Visit visit) {
  for (const Operand& operand : instruction.operands) {
    if (operand.kind == Operand::Kind::kLabel) visit(uint32_t(operand.index));
    if (operand.kind != Operand::Kind::kVector) continue;
    for (const Operand& element : operand.elements) {
      if (element.kind == Operand::Kind::kLabel) visit(uint32_t(element.index));
    }
  }
}

std::vector<bool> find_leaders(const Function& function) {
  const std::vector<Instruction>& code = function.code;
  std::vector<bool> leader(code.size() + 1, false);
  leader[0] = true;
  for (size_t i = 0; i < code.size(); ++i) {
    if (leaves(code[i]) || branches(code[i])) leader[i + 1] = true;
    if (branches(code[i])) for_each_target(code[i], [&](uint32_t t) { leader[t] = true; });
  }
  return leader;
}

}  // namespace

Cfg build_cfg(const Function& function) {
  const std::vector<Instruction>& code = function.code;
  const std::vector<bool> leader = find_leaders(function);
  Cfg cfg;
  cfg.block_of.resize(code.size());
  for (uint32_t i = 0; i < code.size(); ++i) {
    if (leader[i]) cfg.blocks.push_back({i, i, {}});
    cfg.blocks.back().end = i + 1;
    cfg.block_of[i] = uint32_t(cfg.blocks.size() - 1);
  }
  for (BasicBlock& block : cfg.blocks) {
    const Instruction& last = code[block.end - 1];
    if (branches(last)) {
      for_each_target(last, [&](uint32_t t) { block.successors.push_back(cfg.block_of[t]); });
    }
    const bool stops = last.guard < 0 && (leaves(last) || branches(last));
    if (!stops && block.end < code.size()) block.successors.push_back(cfg.block_of[block.end]);
    std::vector<uint32_t>& next = block.successors;
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
  }
  return cfg;
}

}  // namespace kv::simt::ptx
