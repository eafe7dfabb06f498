// Purpose: a loaded module: its text, its variables in device memory, its kernels.
// Contract: kernels are decoded when first needed and kept. Variables get their initial bytes when
// the module is loaded and again at reset.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/simt/exec/lower/decode.h"
#include "harness/simt/memory/address_space.h"
#include "harness/simt/ptx/parse.h"

namespace kv::simt {

struct LoadedModule;

struct Kernel {
  LoadedModule* module = nullptr;
  const ptx::Function* function = nullptr;
  std::unique_ptr<Program> program;  // once decoded
  std::optional<Error> error;        // why it cannot be
  const ptx::Instruction* culprit = nullptr;
  uint64_t id = 0;  // of the program, for the sites of findings
};

struct LoadedModule {
  std::unique_ptr<ptx::Module> ptx;
  std::vector<Extent*> variables;  // parallel to ptx->variables; null for shared ones
  std::vector<std::unique_ptr<Kernel>> kernels;
};

/// Reserves and fills the variables. `next_id` numbers the kernels.
Result<std::unique_ptr<LoadedModule>> make_module(std::string text, AddressSpace& space,
                                                  uint64_t* next_id);
/// Initial bytes and addresses of other variables.
void initialise_variables(LoadedModule& module);
/// Decodes the kernel if that was not done.
Result<Program*> program_of(Kernel& kernel);

}  // namespace kv::simt
