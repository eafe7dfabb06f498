// What a loaded module holds, as the Device tells it.
#include <algorithm>

#include "harness/simt/device.h"
#include "harness/simt/exec/module_state.h"

namespace kv::simt {

Result<Kernel*> Device::find_kernel(LoadedModule* module, std::string_view name) {
  for (auto& kernel : module->kernels) {
    if (kernel->function->name == name) return kernel.get();
  }
  return bad_input("the module has no kernel " + std::string(name));
}

Result<KernelInfo> Device::kernel_info(Kernel* kernel) {
  KV_ASSIGN_OR_RETURN(const Program* program, program_of(*kernel));
  const ptx::Function& f = *kernel->function;
  KernelInfo info;
  info.name = f.name;
  for (const ptx::Parameter& p : f.parameters) {
    info.parameter_offsets.push_back(p.offset_bytes);
    info.parameter_sizes.push_back(p.size_bytes);
  }
  info.parameter_bytes = f.parameter_bytes;
  info.static_shared_bytes = program->static_shared_bytes;
  info.dynamic_shared_offset = program->dynamic_shared_offset;
  info.local_bytes = program->local_bytes + program->frame_bytes;
  info.registers = program->registers;
  const uint32_t* const limit = f.required_threads[0] ? f.required_threads : f.max_threads;
  if (limit[0]) {
    const uint64_t threads = uint64_t{limit[0]} * std::max(1u, limit[1]) * std::max(1u, limit[2]);
    info.max_threads = uint32_t(std::min<uint64_t>(threads, 1024));
  }
  return info;
}

Result<Device::Symbol> Device::find_symbol(LoadedModule* module, std::string_view name) {
  for (size_t k = 0; k < module->variables.size(); ++k) {
    if (!module->variables[k] || module->ptx->variables[k].name != name) continue;
    return Symbol{module->variables[k]->base, module->variables[k]->bytes};
  }
  return bad_input("the module has no variable " + std::string(name));
}

}  // namespace kv::simt
