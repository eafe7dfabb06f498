#include "harness/simt/exec/module_state.h"

#include <algorithm>
#include <cstring>

#include "harness/core/hash.h"
#include "harness/simt/memory/layout.h"

namespace kv::simt {
namespace {

bool in_memory(const ptx::Variable& v) {
  return v.space == ptx::Space::kGlobal || v.space == ptx::Space::kConst;
}

/// All instructions of a module have numbers, function by function.
uint64_t number_of(const LoadedModule& module, const ptx::Instruction* ins) {
  for (size_t f = 0; f < module.first_number.size(); ++f) {
    const auto& code = module.ptx->functions[f].code;
    if (!code.empty() && ins >= &code.front() && ins <= &code.back()) {
      return module.first_number[f] + uint64_t(ins - code.data());
    }
  }
  return 0;
}

/// A program decoded anew has findings of its own.
void forget_program(Kernel& kernel) {
  constexpr uint64_t kGeneration = uint64_t{1} << 20;  // sites have 32 bits of it
  if (kernel.program) kernel.id += kGeneration;
  kernel.program.reset();
  kernel.error.reset();
  kernel.culprit = nullptr;
}

ProbePlan plan_of(const Kernel& kernel, uint32_t bits) {
  const LoadedModule& module = *kernel.module;
  ProbePlan plan;
  plan.bits = bits;
  plan.watched = module.watched;
  Hasher hasher;
  hasher.add(module.hash);
  hasher.add_text(kernel.function->name);
  plan.edge_base = hasher.digest() >> 1;
  plan.number = [&module](const ptx::Instruction* ins) { return number_of(module, ins); };
  return plan;
}

}  // namespace

Result<std::unique_ptr<LoadedModule>> make_module(std::string text, AddressSpace& space,
                                                  uint64_t* next_id) {
  auto module = std::make_unique<LoadedModule>();
  module->hash = hash_bytes(std::as_bytes(std::span(text)));
  KV_ASSIGN_OR_RETURN(module->ptx, ptx::parse_module(std::move(text)));
  for (const ptx::Function& f : module->ptx->functions) {
    module->first_number.push_back(module->instructions);
    module->instructions += f.code.size();
  }
  for (const ptx::Variable& v : module->ptx->variables) {
    module->variables.push_back(nullptr);
    if (!in_memory(v)) continue;
    if (v.is_extern) {
      return unsupported("variable " + v.name +
                         " is declared .extern: linking of several modules is not supported");
    }
    KV_ASSIGN_OR_RETURN(
        module->variables.back(),
        space.add_symbol(v.size_bytes, v.align_bytes, v.space == ptx::Space::kConst, v.name));
  }
  initialise_variables(*module);
  for (const ptx::Function& f : module->ptx->functions) {
    if (!f.is_entry || !f.has_body) continue;
    auto kernel = std::make_unique<Kernel>();
    kernel->module = module.get();
    kernel->function = &f;
    kernel->id = ++*next_id;
    module->kernels.push_back(std::move(kernel));
  }
  return module;
}

void initialise_variables(LoadedModule& module) {
  for (size_t k = 0; k < module.variables.size(); ++k) {
    Extent* const extent = module.variables[k];
    if (!extent) continue;
    const ptx::Variable& v = module.ptx->variables[k];
    auto* const bytes = reinterpret_cast<uint8_t*>(extent->base);
    std::memset(bytes, 0, extent->bytes);
    std::copy_n(v.initial.data(), std::min<uint64_t>(v.initial.size(), extent->bytes), bytes);
    for (const ptx::Variable::Relocation& r : v.relocations) {
      if (r.target.kind != ptx::SymbolRef::Kind::kModuleVariable) continue;
      const Extent* const target = module.variables[size_t(r.target.index)];
      if (!target || r.offset + r.bytes > extent->bytes) continue;
      const uint64_t address = target->base + uint64_t(r.addend);
      std::memcpy(bytes + r.offset, &address, std::min<uint32_t>(r.bytes, 8));
    }
    AddressSpace::instance().set_defined(*extent, extent->base, extent->bytes, true);
  }
}

Result<Program*> program_of(Kernel& kernel, uint32_t probes) {
  if (kernel.error) return *kernel.error;
  if (kernel.program && kernel.probes == probes) return kernel.program.get();
  forget_program(kernel);
  kernel.probes = probes;
  LowerInput input;
  input.module = kernel.module->ptx.get();
  input.kernel = kernel.function;
  input.variable_address = [&](int32_t index) {
    const Extent* const extent = kernel.module->variables[size_t(index)];
    return extent ? extent->base : 0;
  };
  auto program = decode(input, plan_of(kernel, probes), &kernel.culprit);
  if (!program.ok()) {
    kernel.error = program.error();
    return program.error();
  }
  kernel.program = std::move(program).value();
  return kernel.program.get();
}

void replace_instruction(LoadedModule& module, ptx::Instruction& target,
                         const ptx::Instruction& with) {
  for (auto& kernel : module.kernels) forget_program(*kernel);
  target = with;
}

}  // namespace kv::simt
