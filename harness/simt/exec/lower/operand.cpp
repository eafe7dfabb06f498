// Operands: registers, constants, special registers and symbols become numbered registers.
#include <algorithm>
#include <set>

#include "harness/simt/exec/branching.h"
#include "harness/simt/exec/lower/lowerer.h"
#include "harness/simt/memory/layout.h"

namespace kv::simt {

using ptx::Operand;

uint32_t Lowerer::new_register(char cls) {
  out_.registers.push_back({cls, false, 0, -1});
  return uint32_t(out_.registers.size() - 1);
}

uint32_t Lowerer::constant(char cls, uint64_t value) {
  if (cls == '2') value = uint32_t(value);
  const auto [entry, fresh] = constants_.try_emplace({cls, value}, 0);
  if (fresh) {
    entry->second = new_register(cls);
    out_.registers.back().constant = true;
    out_.registers.back().value = value;
  }
  return entry->second;
}

char Lowerer::class_of(int32_t index) const {
  const ptx::Type type = instances_.back()->function->registers[size_t(index)].type;
  if (type == ptx::Type::kPred) return 'p';
  return class_of_bytes(ptx::type_bytes(type));
}

uint32_t Lowerer::register_of(int32_t index) {
  int32_t& r = here().registers[size_t(index)];
  if (r < 0) r = int32_t(new_register(class_of(index)));
  return uint32_t(r);
}

uint32_t Lowerer::special(std::string_view name, char cls) {
  struct Row {
    std::string_view name;
    Special what;
  };
  static constexpr Row kRows[] = {
      {"%tid.x", Special::kTidX},
      {"%tid.y", Special::kTidY},
      {"%tid.z", Special::kTidZ},
      {"%ntid.x", Special::kNtidX},
      {"%ntid.y", Special::kNtidY},
      {"%ntid.z", Special::kNtidZ},
      {"%ctaid.x", Special::kCtaidX},
      {"%ctaid.y", Special::kCtaidY},
      {"%ctaid.z", Special::kCtaidZ},
      {"%nctaid.x", Special::kNctaidX},
      {"%nctaid.y", Special::kNctaidY},
      {"%nctaid.z", Special::kNctaidZ},
      {"%laneid", Special::kLaneId},
      {"%warpid", Special::kWarpId},
      {"%nwarpid", Special::kNwarpId},
      {"%smid", Special::kSmId},
      {"%nsmid", Special::kNsmId},
      {"%gridid", Special::kGridId},
      {"%lanemask_eq", Special::kLanemaskEq},
      {"%lanemask_le", Special::kLanemaskLe},
      {"%lanemask_lt", Special::kLanemaskLt},
      {"%lanemask_ge", Special::kLanemaskGe},
      {"%lanemask_gt", Special::kLanemaskGt},
      {"%clock", Special::kZero},
      {"%clock_hi", Special::kZero},
      {"%clock64", Special::kZero},
      {"%globaltimer", Special::kZero},
      {"%globaltimer_lo", Special::kZero},
      {"%globaltimer_hi", Special::kZero},
      {"%dynamic_smem_size", Special::kDynamicSharedBytes},
      {"%total_smem_size", Special::kTotalSharedBytes},
      {"%cluster_ctarank", Special::kZero},
      {"%cluster_nctarank", Special::kOne},
      {"%cluster_ctaid.x", Special::kZero},
      {"%cluster_ctaid.y", Special::kZero},
      {"%cluster_ctaid.z", Special::kZero},
      {"%cluster_nctaid.x", Special::kOne},
      {"%cluster_nctaid.y", Special::kOne},
      {"%cluster_nctaid.z", Special::kOne},
      {"%clusterid.x", Special::kCtaidX},
      {"%clusterid.y", Special::kCtaidY},
      {"%clusterid.z", Special::kCtaidZ},
      {"%nclusterid.x", Special::kNctaidX},
      {"%nclusterid.y", Special::kNctaidY},
      {"%nclusterid.z", Special::kNctaidZ},
      {"%is_explicit_cluster", Special::kZero},
      // The address of the workspace of cooperative grids, high and low.
      {"%envreg0", Special::kZero},
      {"%envreg1", Special::kEnvReg1},
      {"%envreg2", Special::kEnvReg2},
  };
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    const int key = int(row.what) * 2 + (cls == '4');
    const auto [entry, fresh] = specials_.try_emplace(key, 0);
    if (fresh) {
      entry->second = new_register(cls);
      out_.registers.back().special = int(row.what);
    }
    return entry->second;
  }
  return ~0u;
}

Result<uint64_t> Lowerer::symbol_value(const ptx::SymbolRef& ref, ptx::Space* space) const {
  const Instance& instance = *instances_.back();
  const auto index = size_t(ref.index);
  switch (ref.kind) {
    case ptx::SymbolRef::Kind::kModuleVariable: {
      const ptx::Variable& v = input_.module->variables[index];
      *space = v.space;
      if (v.space != ptx::Space::kShared) return input_.variable_address(ref.index);
      const auto found = shared_.find(&v);
      return found == shared_.end() ? dynamic_shared_ : found->second;
    }
    case ptx::SymbolRef::Kind::kFunctionVariable: {
      const ptx::Variable& v = instance.function->variables[index];
      *space = v.space;
      if (v.space == ptx::Space::kShared) {
        const auto found = shared_.find(&v);
        return found == shared_.end() ? dynamic_shared_ : found->second;
      }
      const auto offset = uint64_t(instance.variables[index]);
      return v.space == ptx::Space::kParam ? layout::kParamFrame + offset : offset;
    }
    case ptx::SymbolRef::Kind::kParameter:
      *space = ptx::Space::kParam;
      return uint64_t(instance.parameters[index]);
    case ptx::SymbolRef::Kind::kReturn:
      *space = ptx::Space::kParam;
      return uint64_t(instance.returns[index]);
    default:
      return unsupported_form(*current_, "the address of a function is used as a value");
  }
}

Result<uint32_t> Lowerer::destination(const Operand& operand, char cls) {
  if (operand.kind == Operand::Kind::kDiscard) return new_register(cls);
  if (operand.kind != Operand::Kind::kRegister) {
    return unsupported_form(*current_, "a destination that is not a register");
  }
  if (class_of(operand.index) != cls) {
    return unsupported_form(*current_, "a destination register of another width");
  }
  return register_of(operand.index);
}

Result<uint32_t> Lowerer::source(const Operand& operand, char cls) {
  switch (operand.kind) {
    case Operand::Kind::kRegister: {
      const char own = class_of(operand.index);
      const uint32_t r = register_of(operand.index);
      if (own != cls) {
        if (own == '4' && cls == '2') {  // the low half
          Step& s = step("cvt.u32.u64");
          s.destinations = {new_register('2')};
          s.sources = {r};
          return s.destinations[0];
        }
        return unsupported_form(*current_, "a source register of another width");
      }
      if (!operand.negated) return r;
      Step& s = step("not.pred");
      s.destinations = {new_register('p')};
      s.sources = {r};
      return s.destinations[0];
    }
    case Operand::Kind::kImmediate: {
      uint64_t value = uint64_t(operand.immediate);
      if (operand.immediate_kind == Operand::ImmediateKind::kF64 && cls == '2') {
        double d;
        static_assert(sizeof d == sizeof value);
        __builtin_memcpy(&d, &value, 8);
        value = __builtin_bit_cast(uint32_t, float(d));
      } else if (operand.immediate_kind == Operand::ImmediateKind::kF32 && cls == '4') {
        value = __builtin_bit_cast(uint64_t, double(__builtin_bit_cast(float, uint32_t(value))));
      }
      if (cls == 'p') {
        Step& s = step("~mov.pred.constant");
        s.proto.mode = value != 0;
        s.destinations = {new_register('p')};
        return s.destinations[0];
      }
      return constant(cls, value);
    }
    case Operand::Kind::kSpecial: {
      const uint32_t r = special(operand.symbol, cls);
      if (r != ~0u) return r;
      return unsupported_form(*current_, "special register " + std::string(operand.symbol));
    }
    case Operand::Kind::kSymbol: {
      ptx::Space space;
      KV_ASSIGN_OR_RETURN(const uint64_t value, symbol_value(operand.symbol_ref, &space));
      return constant(cls, value + uint64_t(operand.immediate));
    }
    default:
      return unsupported_form(*current_, "an operand of this kind");
  }
}

}  // namespace kv::simt
