// The Device's methods for faults that are planted and for what instrumented kernels count.
#include "harness/simt/device.h"
#include "harness/simt/exec/module_state.h"

namespace kv::simt {
namespace {

ptx::Instruction& instruction_at(LoadedModule& module, Device::CodePlace place) {
  return module.ptx->functions[place.function].code[place.instruction];
}

}  // namespace

const ptx::Module& Device::ptx_of(const LoadedModule& module) const { return *module.ptx; }

const LoadedModule& Device::module_of(const Kernel& kernel) const { return *kernel.module; }

uint64_t Device::hash_of(const LoadedModule& module) const { return module.hash; }

void Device::replace_instruction(LoadedModule& module, CodePlace place,
                                 const ptx::Instruction& with) {
  ptx::Instruction& target = instruction_at(module, place);
  module.watched = &target;
  simt::replace_instruction(module, target, with);
}

void Device::restore_instruction(LoadedModule& module, CodePlace place,
                                 const ptx::Instruction& original) {
  module.watched = nullptr;
  simt::replace_instruction(module, instruction_at(module, place), original);
}

uint64_t Device::executions(const LoadedModule& module, CodePlace place) const {
  if (module.executions.empty()) return 0;
  return module.executions[module.first_number[place.function] + place.instruction];
}

}  // namespace kv::simt
