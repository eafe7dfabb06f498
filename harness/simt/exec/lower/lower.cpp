#include "harness/simt/exec/lower/lower.h"

#include <algorithm>
#include <set>

#include "harness/simt/exec/branching.h"
#include "harness/simt/exec/lower/lowerer.h"
#include "harness/simt/exec/lower/optimistic.h"
#include "harness/simt/memory/layout.h"

namespace kv::simt {

using ptx::Operand;

std::string form_text(const ptx::Instruction& ins) {
  std::string text(ins.opcode);
  for (std::string_view m : ins.modifiers) text.append(".").append(m);
  return text;
}

bool has_modifier(const ptx::Instruction& ins, std::string_view name) {
  return std::find(ins.modifiers.begin(), ins.modifiers.end(), name) != ins.modifiers.end();
}

std::optional<ptx::Type> last_type(const ptx::Instruction& ins) {
  for (auto m = ins.modifiers.rbegin(); m != ins.modifiers.rend(); ++m) {
    if (auto type = ptx::type_from_name(*m)) return type;
  }
  return std::nullopt;
}

char class_of_bytes(uint32_t bytes) { return bytes == 16 ? '8' : bytes == 8 ? '4' : '2'; }

Result<Lowered> lower(const LowerInput& input, const ptx::Instruction** where) {
  return Lowerer(input).run(where);
}

Lowerer::Rule Lowerer::rule_of(std::string_view opcode) {
  struct Row {
    std::string_view opcode;
    Rule rule;
  };
  static constexpr Row kRules[] = {
      {"ld", &Lowerer::load},
      {"ldu", &Lowerer::load},
      {"st", &Lowerer::store},
      {"atom", &Lowerer::atomic},
      {"red", &Lowerer::atomic},
      {"cp", &Lowerer::copy_async},
      {"ldmatrix", &Lowerer::load_matrix},
      {"stmatrix", &Lowerer::store_matrix},
      {"cvta", &Lowerer::convert_address},
      {"isspacep", &Lowerer::is_space},
      {"bra", &Lowerer::branch_to},
      {"brx", &Lowerer::branch_table},
      {"ret", &Lowerer::leave},
      {"exit", &Lowerer::leave},
      {"call", &Lowerer::call},
      {"bar", &Lowerer::barrier_sync},
      {"barrier", &Lowerer::barrier_sync},
      {"trap", &Lowerer::trap_here},
      {"brkpt", &Lowerer::trap_here},
      {"fence", &Lowerer::fence_here},
      {"membar", &Lowerer::fence_here},
      {"prefetch", &Lowerer::nothing},
      {"prefetchu", &Lowerer::nothing},
      {"discard", &Lowerer::nothing},
      {"applypriority", &Lowerer::nothing},
      {"pmevent", &Lowerer::nothing},
      {"griddepcontrol", &Lowerer::nothing},
      {"setmaxnreg", &Lowerer::nothing},
      {"nanosleep", &Lowerer::sleep},
      {"mov", &Lowerer::move},
      {"setp", &Lowerer::set_predicate},
      {"shfl", &Lowerer::shuffle},
      {"mma", &Lowerer::multiply_matrices},
      {"movmatrix", &Lowerer::synchronous},
      {"lop3", &Lowerer::logic3},
      {"match", &Lowerer::match_lanes},
      {"elect", &Lowerer::elect_lane},
      {"vote", &Lowerer::synchronous},
      {"redux", &Lowerer::synchronous},
      {"cvt", &Lowerer::convert},
      {"createpolicy", &Lowerer::create_policy},
      {"addc", &Lowerer::carry},
      {"subc", &Lowerer::carry},
      {"madc", &Lowerer::carry},
  };
  for (const Row& row : kRules) {
    if (row.opcode == opcode) return row.rule;
  }
  return nullptr;
}

Error Lowerer::unsupported_form(const ptx::Instruction& ins, const std::string& why) const {
  std::string text = "the CPU device does not know the instruction form " + std::string(ins.text) +
                     " (PTX line " + std::to_string(ins.ptx_line);
  if (!ins.where.file.empty()) {
    text += ", " + std::string(ins.where.file) + ":" + std::to_string(ins.where.line);
  }
  return unsupported(text + ")" + (why.empty() ? "" : ": " + why));
}

Result<Lowered> Lowerer::run(const ptx::Instruction** where) {
  Instance kernel;
  kernel.function = input_.kernel;
  for (const ptx::Parameter& p : input_.kernel->parameters) {
    kernel.parameters.push_back(int64_t(p.offset_bytes));
  }
  Result<void> done = layout_shared();
  if (done.ok()) done = body(kernel);
  if (!done.ok()) {
    *where = current_;
    return done.error();
  }
  for (Step& s : out_.steps) {
    if (s.target >= 0) s.target = int32_t(out_.labels[size_t(s.target)]);
  }
  mark_optimistic_reads(out_);
  return std::move(out_);
}

Result<void> Lowerer::body(Instance& instance) {
  const ptx::Function& f = *instance.function;
  instance.registers.assign(f.registers.size(), -1);
  KV_RETURN_IF_ERROR(layout_instance(instance));
  instance.first_label = int32_t(out_.labels.size());
  out_.labels.resize(out_.labels.size() + f.code.size() + 1);
  instances_.push_back(&instance);
  for (size_t k = 0; k < f.code.size(); ++k) {
    place_label(instance.first_label + int32_t(k));
    KV_RETURN_IF_ERROR(instruction(f.code[k]));
    if (out_.steps.size() > (size_t{1} << 24)) {
      return unsupported("kernel " + input_.kernel->name + " has more than 2^24 instructions");
    }
  }
  place_label(instance.first_label + int32_t(f.code.size()));
  instances_.pop_back();
  return {};
}

Result<void> Lowerer::instruction(const ptx::Instruction& ins) {
  current_ = &ins;
  first_step_ = out_.steps.size();
  const Rule rule = rule_of(ins.opcode);
  KV_RETURN_IF_ERROR(rule ? (this->*rule)(ins) : plain(ins));
  if (ins.opcode == "call") return {};
  if (ins.cut_to_32_bits) cut_result();
  // All steps share the guard; the last one counts.
  const int32_t guard = ins.guard >= 0 ? int32_t(register_of(ins.guard)) : -1;
  for (size_t k = first_step_; k < out_.steps.size(); ++k) {
    Step& s = out_.steps[k];
    s.source = &ins;
    s.counts = k + 1 == out_.steps.size();
    if (guard < 0 || s.guard >= 0) continue;
    s.guard = guard;
    s.guard_negated = ins.guard_negated;
  }
  return {};
}

/// Shared variables that the kernel or a function it calls names get their place: static ones by
/// module order, then the dynamic part, aligned to 16 at least.
Result<void> Lowerer::layout_shared() {
  std::vector<const ptx::Function*> reached = {input_.kernel};
  std::set<const ptx::Variable*> used;
  uint64_t dynamic_align = 16;
  const auto visit = [&](const ptx::SymbolRef& ref, const ptx::Function& f) {
    if (ref.kind == ptx::SymbolRef::Kind::kModuleVariable) {
      used.insert(&input_.module->variables[size_t(ref.index)]);
    } else if (ref.kind == ptx::SymbolRef::Kind::kFunctionVariable) {
      used.insert(&f.variables[size_t(ref.index)]);
    }
  };
  for (size_t k = 0; k < reached.size(); ++k) {
    for (const ptx::Instruction& ins : reached[k]->code) {
      for (const Operand& o : ins.operands) {
        visit(o.symbol_ref, *reached[k]);
        for (const Operand& e : o.elements) visit(e.symbol_ref, *reached[k]);
      }
      if (ins.callee_ref.kind != ptx::SymbolRef::Kind::kFunction) continue;
      const ptx::Function* callee = &input_.module->functions[size_t(ins.callee_ref.index)];
      if (std::find(reached.begin(), reached.end(), callee) == reached.end()) {
        reached.push_back(callee);
      }
    }
  }
  uint64_t at = 0;
  const auto place = [&](const ptx::Variable& v) {
    if (v.space != ptx::Space::kShared || !used.count(&v)) return;
    if (v.size_bytes == 0) {
      dynamic_align = std::max<uint64_t>(dynamic_align, v.align_bytes);
      return;
    }
    at = (at + v.align_bytes - 1) / v.align_bytes * v.align_bytes;
    shared_[&v] = at;
    at += v.size_bytes;
  };
  for (const ptx::Variable& v : input_.module->variables) place(v);
  for (const ptx::Function* f : reached) {
    for (const ptx::Variable& v : f->variables) place(v);
  }
  if (at > 256 << 10) {
    return bad_input("kernel " + input_.kernel->name + " wants " + std::to_string(at) +
                     " bytes of static shared memory; at most 262144 can be given");
  }
  out_.static_shared_bytes = uint32_t(at);
  dynamic_shared_ = (at + dynamic_align - 1) / dynamic_align * dynamic_align;
  out_.dynamic_shared_offset = uint32_t(dynamic_shared_);
  return {};
}

/// Local variables and call slots of one expanded body.
Result<void> Lowerer::layout_instance(Instance& instance) {
  for (const ptx::Variable& v : instance.function->variables) {
    int64_t offset = -1;
    const bool frame = v.space == ptx::Space::kParam;
    if (v.space == ptx::Space::kLocal || frame) {
      uint32_t& size = frame ? out_.frame_bytes : out_.local_bytes;
      const uint64_t align = std::max<uint64_t>(v.align_bytes, 4);
      const uint64_t begin = (size + align - 1) / align * align;
      if (begin + v.size_bytes > 1 << 20) {
        return bad_input("kernel " + input_.kernel->name + " wants more than 1 MiB of " +
                         (frame ? "parameter" : "local") + " memory for each thread");
      }
      offset = int64_t(begin);
      size = uint32_t(begin + v.size_bytes);
    }
    instance.variables.push_back(offset);
  }
  return {};
}

/// A planted fault: the 64-bit result just made keeps its low half, sign-extended.
void Lowerer::cut_result() {
  const std::vector<uint32_t> result = out_.steps.back().destinations;
  const uint32_t low = new_register('2');
  Step& cut = step("cvt.u32.u64");
  cut.sources = result;
  cut.destinations = {low};
  Step& extend = step("cvt.s64.s32");
  extend.sources = {low};
  extend.destinations = result;
}

// --- steps

Step& Lowerer::step(const FormRow& row) {
  Step& s = out_.steps.emplace_back();
  s.run = row.run;
  s.taint = row.taint;
  s.source_bits = row.source_bits;
  s.proto.mode = row.mode;
  s.source = current_;
  return s;
}

Step& Lowerer::step(const char* form) {
  const FormRow* row = find_form(form);
  KV_CHECK(row, std::string("no internal form ") + form);
  return step(*row);
}

Step& Lowerer::control_step(Handler run) {
  Step& s = out_.steps.emplace_back();
  s.run = run;
  s.taint = Taint::kSideEffect;
  s.control = true;
  s.source = current_;
  return s;
}

int32_t Lowerer::new_label() {
  out_.labels.push_back(0);
  return int32_t(out_.labels.size() - 1);
}

Result<void> Lowerer::plain(const ptx::Instruction& ins) {
  if (has_modifier(ins, "cc")) return carry(ins);
  const std::string text = form_text(ins);
  const FormRow* row = find_form(text);
  if (!row || text[0] == '~') return unsupported_form(ins, "");
  return plain(ins, *row);
}

Result<void> Lowerer::plain(const ptx::Instruction& ins, const FormRow& row) {
  const std::string_view roles = row.roles;
  const size_t equals = roles.find('=');
  const size_t wanted = roles.size() - 1;
  // setp on pairs writes "%p|%q" as one operand.
  std::vector<const Operand*> operands;
  for (const Operand& o : ins.operands) {
    if (o.kind == Operand::Kind::kPair) {
      for (const Operand& e : o.elements) operands.push_back(&e);
    } else {
      operands.push_back(&o);
    }
  }
  if (operands.size() != wanted) {
    return unsupported_form(
        ins, std::to_string(operands.size()) + " operands, expected " + std::to_string(wanted));
  }
  std::vector<uint32_t> destinations, sources;
  for (size_t k = equals; k < wanted; ++k) {
    KV_ASSIGN_OR_RETURN(const uint32_t r, source(*operands[k], roles[k + 1]));
    sources.push_back(r);
  }
  for (size_t k = 0; k < equals; ++k) {
    KV_ASSIGN_OR_RETURN(const uint32_t r, destination(*operands[k], roles[k]));
    destinations.push_back(r);
  }
  Step& s = step(row);
  s.destinations = std::move(destinations);
  s.sources = std::move(sources);
  return {};
}

}  // namespace kv::simt
