#include "harness/simt/exec/module_state.h"

#include <cstring>

#include "harness/simt/memory/layout.h"

namespace kv::simt {
namespace {

bool in_memory(const ptx::Variable& v) {
  return v.space == ptx::Space::kGlobal || v.space == ptx::Space::kConst;
}

}  // namespace

Result<std::unique_ptr<LoadedModule>> make_module(std::string text, AddressSpace& space,
                                                  uint64_t* next_id) {
  auto module = std::make_unique<LoadedModule>();
  KV_ASSIGN_OR_RETURN(module->ptx, ptx::parse_module(std::move(text)));
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
    std::memcpy(bytes, v.initial.data(), std::min<uint64_t>(v.initial.size(), extent->bytes));
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

Result<Program*> program_of(Kernel& kernel) {
  if (kernel.program) return kernel.program.get();
  if (kernel.error) return *kernel.error;
  LowerInput input;
  input.module = kernel.module->ptx.get();
  input.kernel = kernel.function;
  input.variable_address = [&](int32_t index) {
    const Extent* const extent = kernel.module->variables[size_t(index)];
    return extent ? extent->base : 0;
  };
  auto program = decode(input, &kernel.culprit);
  if (!program.ok()) {
    kernel.error = program.error();
    return program.error();
  }
  kernel.program = std::move(program).value();
  return kernel.program.get();
}

}  // namespace kv::simt
