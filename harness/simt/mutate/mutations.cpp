#include "harness/simt/mutate/mutations.h"

#include <algorithm>

#include "harness/simt/mutate/operators.h"
#include "harness/simt/ptx/print.h"

namespace kv::simt::mutate {

const char* operator_name(Operator op) {
  static constexpr const char* kNames[kOperators + 1] = {
      "unknown", "compare", "constant", "swap",  "barrier", "fence", "wait",
      "add_sub", "shift",   "negate",   "guard", "lane",    "narrow"};
  const auto index = uint32_t(op);
  return kNames[index <= kOperators ? index : 0];
}

ptx::Instruction& Site::add(Operator op, uint32_t variant) const {
  out.push_back({op, variant, ins});
  return out.back().changed;
}

bool Site::has(std::string_view modifier) const {
  return std::find(ins.modifiers.begin(), ins.modifiers.end(), modifier) != ins.modifiers.end();
}

ptx::Type Site::last_type() const {
  for (auto m = ins.modifiers.rbegin(); m != ins.modifiers.rend(); ++m) {
    if (const auto type = ptx::type_from_name(*m)) return *type;
  }
  return ptx::Type::kNone;
}

std::vector<Mutation> mutations_of(const ptx::Function& function, const ptx::Instruction& ins) {
  std::vector<Mutation> list;
  const Site site{function, ins, list};
  change_comparison(site);
  change_constants(site);
  swap_operands(site);
  drop_synchronisation(site);
  exchange_add_and_sub(site);
  change_shift(site);
  change_guard(site);
  change_lane(site);
  narrow_result(site);
  // Swapping a register with itself and the like change nothing.
  const std::string before = changed_text(function, ins);
  std::erase_if(list,
                [&](const Mutation& m) { return changed_text(function, m.changed) == before; });
  return list;
}

std::string changed_text(const ptx::Function& function, const ptx::Instruction& changed) {
  if (changed.opcode == kNothing) return "(nothing)";
  std::string text = instruction_text(function, changed);
  if (changed.cut_to_32_bits) text += " (cut to 32 bits)";
  return text;
}

}  // namespace kv::simt::mutate
