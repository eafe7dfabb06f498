// Branches, calls, barriers.
#include "harness/simt/exec/branching.h"
#include "harness/simt/exec/calls.h"
#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/lower/lowerer.h"
#include "harness/simt/memory/layout.h"

namespace kv::simt {

using ptx::Operand;

Result<void> Lowerer::branch_to(const ptx::Instruction& ins) {
  if (ins.operands.empty() || ins.operands[0].kind != Operand::Kind::kLabel) {
    return unsupported_form(ins, "a branch without a label");
  }
  Step& s = control_step(branch);
  s.target = here().first_label + ins.operands[0].index;
  s.falls_through = ins.guard >= 0;
  return {};
}

/// brx.idx: one comparison and branch for each target; an index beyond the table falls through to
/// the first, as nothing is defined for it.
Result<void> Lowerer::branch_table(const ptx::Instruction& ins) {
  if (ins.operands.size() != 2 || ins.operands[1].elements.empty() || ins.guard >= 0) {
    return unsupported_form(ins, "");
  }
  KV_ASSIGN_OR_RETURN(const uint32_t index, source(ins.operands[0], '2'));
  const std::vector<Operand>& table = ins.operands[1].elements;
  for (size_t k = 1; k < table.size(); ++k) {
    const uint32_t p = new_register('p');
    Step& test = step("setp.eq.s32");
    test.destinations = {p};
    test.sources = {index, constant('2', k)};
    Step& s = control_step(branch);
    s.target = here().first_label + table[k].index;
    s.guard = int32_t(p);
  }
  Step& s = control_step(branch);
  s.target = here().first_label + table[0].index;
  s.falls_through = false;
  return {};
}

/// ret and exit. In a called function ret goes to the end of its expansion.
Result<void> Lowerer::leave(const ptx::Instruction& ins) {
  const int32_t end = here().end_label;
  if (end >= 0 && ins.opcode == "ret") {
    Step& s = control_step(branch);
    s.target = end;
    s.falls_through = ins.guard >= 0;
    return {};
  }
  Step& s = control_step(exit_lanes);
  s.falls_through = ins.guard >= 0;
  return {};
}

/// A direct call, expanded. Arguments are the caller's .param slots: the callee's formal parameters
/// are names for the same memory, and so are the return slots.
Result<void> Lowerer::call(const ptx::Instruction& ins) {
  if (ins.callee_ref.kind != ptx::SymbolRef::Kind::kFunction) {
    return unsupported_form(ins, "an indirect call");
  }
  const ptx::Function& callee = input_.module->functions[size_t(ins.callee_ref.index)];
  if (!callee.has_body) {
    if (callee.name == "vprintf") return runtime_call(ins, print_text);
    if (callee.name == "__assertfail") return runtime_call(ins, assert_failed);
    return unsupported_form(ins, "function " + callee.name + " has no body in this module");
  }
  for (const Instance* instance : instances_) {
    if (instance->function == &callee) {
      return unsupported_form(ins, "recursion through " + callee.name);
    }
  }
  if (instances_.size() >= 32) return unsupported_form(ins, "calls nested deeper than 32");
  Instance instance;
  instance.function = &callee;
  const auto slots = [&](const std::vector<Operand>& actual,
                         const std::vector<ptx::Parameter>& formal,
                         std::vector<int64_t>* out) -> Result<void> {
    if (actual.size() != formal.size()) {
      return unsupported_form(ins, std::to_string(actual.size()) + " arguments, expected " +
                                       std::to_string(formal.size()));
    }
    for (const Operand& o : actual) {
      if (o.kind != Operand::Kind::kSymbol) {
        return unsupported_form(ins, "an argument that is not a .param variable");
      }
      ptx::Space space;
      KV_ASSIGN_OR_RETURN(const uint64_t at, symbol_value(o.symbol_ref, &space));
      out->push_back(int64_t(at));
    }
    return {};
  };
  KV_RETURN_IF_ERROR(slots(ins.call_arguments, callee.parameters, &instance.parameters));
  KV_RETURN_IF_ERROR(slots(ins.call_returns, callee.returns, &instance.returns));
  // A guarded call is a branch around the expansion.
  const int32_t end = new_label();
  if (ins.guard >= 0) {
    Step& skip = control_step(branch);
    skip.target = end;
    skip.guard = int32_t(register_of(ins.guard));
    skip.guard_negated = !ins.guard_negated;
    skip.source = &ins;
  }
  instance.end_label = end;
  KV_RETURN_IF_ERROR(body(instance));
  place_label(end);
  current_ = &ins;
  return {};
}

/// vprintf(format, arguments) and __assertfail(message, file, line, function, char bytes): the
/// handlers get the addresses of the argument slots.
Result<void> Lowerer::runtime_call(const ptx::Instruction& ins, Handler handler) {
  std::vector<uint32_t> slots;
  for (const std::vector<Operand>* list : {&ins.call_arguments, &ins.call_returns}) {
    for (const Operand& o : *list) {
      if (o.kind != Operand::Kind::kSymbol) {
        return unsupported_form(ins, "an argument that is not a .param variable");
      }
      ptx::Space space;
      KV_ASSIGN_OR_RETURN(const uint64_t at, symbol_value(o.symbol_ref, &space));
      slots.push_back(constant('4', at));
    }
  }
  if (slots.size() < 2 || slots.size() > 6) return unsupported_form(ins, "");
  Step& s = step("~nothing");
  s.run = handler;
  s.taint = Taint::kSideEffect;
  s.sources = std::move(slots);
  s.proto.width = 1;
  if (ins.guard >= 0) {
    s.guard = int32_t(register_of(ins.guard));
    s.guard_negated = ins.guard_negated;
  }
  return {};
}

/// bar{.cta}.{sync,arrive,red} and barrier{.cta}..., bar.warp.sync.
Result<void> Lowerer::barrier_sync(const ptx::Instruction& ins) {
  if (has_modifier(ins, "warp")) return barrier_warp(ins);
  if (has_modifier(ins, "cluster")) return unsupported_form(ins, "clusters");
  const bool reduce = has_modifier(ins, "red");
  const bool arrive = has_modifier(ins, "arrive");
  const size_t first = reduce ? 1 : 0;
  if (ins.operands.size() <= first) return unsupported_form(ins, "no barrier number");
  uint16_t flags = 0;
  if (arrive) flags |= barrier_flags::kArrive;
  if (ins.opcode == "bar" || has_modifier(ins, "aligned")) flags |= barrier_flags::kAligned;
  KV_ASSIGN_OR_RETURN(const uint32_t id, source(ins.operands[first], '2'));
  uint32_t count = constant('2', 0);
  const size_t last = ins.operands.size() - (reduce ? 1 : 0);
  if (first + 1 < last) {
    KV_ASSIGN_OR_RETURN(count, source(ins.operands[first + 1], '2'));
    flags |= barrier_flags::kHasCount;
    out_.partial_sync = true;
  }
  if (!out_.registers[id].constant || out_.registers[id].value != 0) out_.partial_sync = true;
  if (reduce) return barrier_reduce(ins, id, count, uint16_t(flags | barrier_flags::kReduce));
  Step& s = control_step(barrier);
  s.sources = {id, count};
  s.proto.flags = flags;
  s.synchronises = true;
  return {};
}

/// barrier.red.{popc.u32 d, and.pred p, or.pred p}, id{, count}, {!}q. The predicate is widened to
/// a register and the result comes as one, so that undefined data need no rule of their own.
Result<void> Lowerer::barrier_reduce(const ptx::Instruction& ins, uint32_t id, uint32_t count,
                                     uint16_t flags) {
  KV_ASSIGN_OR_RETURN(const uint32_t p, source(ins.operands.back(), 'p'));
  const uint32_t result = new_register('2');
  const bool counts = has_modifier(ins, "popc");
  Step& s = control_step(barrier);
  s.sources = {id, count, p};
  s.destinations = {result};
  s.proto.flags = flags;
  s.proto.mode = counts ? 0 : has_modifier(ins, "and") ? 1 : 2;
  s.synchronises = true;
  if (counts) {
    KV_ASSIGN_OR_RETURN(const uint32_t d, destination(ins.operands[0], '2'));
    Step& copy = step("mov.u32");
    copy.sources = {result};
    copy.destinations = {d};
    return {};
  }
  KV_ASSIGN_OR_RETURN(const uint32_t d, destination(ins.operands[0], 'p'));
  Step& test = step("setp.ne.b32");
  test.sources = {result, constant('2', 0)};
  test.destinations = {d};
  return {};
}

Result<void> Lowerer::barrier_warp(const ptx::Instruction& ins) {
  if (ins.operands.size() != 1) return unsupported_form(ins, "");
  KV_ASSIGN_OR_RETURN(const uint32_t mask, source(ins.operands[0], '2'));
  Step& s = step("~nothing");
  s.run = warp_sync;
  s.taint = Taint::kSideEffect;
  s.sources = {mask};
  s.synchronises = true;
  return {};
}

Result<void> Lowerer::trap_here(const ptx::Instruction&) {
  Step& s = step("~nothing");
  s.run = trap;
  s.taint = Taint::kSideEffect;
  return {};
}

Result<void> Lowerer::nothing(const ptx::Instruction&) {
  step("~nothing");
  return {};
}

/// Of what it orders, only the scope counts.
Result<void> Lowerer::fence_here(const ptx::Instruction& ins) {
  Step& s = step("~nothing");
  s.run = fence_in_block;
  for (const char* scope : {"gl", "sys", "gpu", "cluster"}) {
    if (has_modifier(ins, scope)) s.run = fence;
  }
  return {};
}

Result<void> Lowerer::sleep(const ptx::Instruction&) {
  Step& s = step("~nothing");
  s.run = yield_slice;
  return {};
}

}  // namespace kv::simt
