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
  uint64_t id = 0;      // of the program, for the sites of findings
  uint32_t probes = 0;  // that the program was decoded with, probe_bits
};

struct LoadedModule {
  std::unique_ptr<ptx::Module> ptx;
  std::vector<Extent*> variables;  // parallel to ptx->variables; null for shared ones
  std::vector<std::unique_ptr<Kernel>> kernels;
  uint64_t hash = 0;  // of the PTX text
  uint64_t instructions = 0;
  std::vector<uint64_t> first_number;  // of each function's instructions, one after the other
  std::vector<uint64_t> executions;    // by number; empty until asked for
  const ptx::Instruction* watched = nullptr;  // where a fault is planted
};

/// Reserves and fills the variables. `next_id` numbers the kernels.
Result<std::unique_ptr<LoadedModule>> make_module(std::string text, AddressSpace& space,
                                                  uint64_t* next_id);
/// Initial bytes and addresses of other variables.
void initialise_variables(LoadedModule& module);
/// Decodes the kernel if that was not done, or not with these probes.
Result<Program*> program_of(Kernel& kernel, uint32_t probes);
/// With whatever probes it has.
inline Result<Program*> program_of(Kernel& kernel) { return program_of(kernel, kernel.probes); }
/// Replaces an instruction and has every kernel decoded anew.
void replace_instruction(LoadedModule& module, ptx::Instruction& target,
                         const ptx::Instruction& with);

}  // namespace kv::simt
