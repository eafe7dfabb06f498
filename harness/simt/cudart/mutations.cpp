#include "harness/simt/cudart/mutations.h"

#include <cstdio>

#include "harness/core/hash.h"
#include "harness/simt/cudart/errors.h"
#include "harness/simt/ptx/print.h"

namespace kv::simt::cudart {
namespace {

static_assert(KV_SIMT_MUTATE_NARROW == mutate::kOperators);

template <size_t kBytes>
void put(char (&to)[kBytes], std::string_view from) {
  std::snprintf(to, kBytes, "%.*s", int(from.size()), from.data());
}

}  // namespace

void Mutations::loaded(LoadedModule* module) {
  modules_.push_back(module);
  entries_.clear();
  if (!wanted_ || planted_ || wanted_->module != device_.hash_of(*module)) return;
  if (const auto done = plant(module); !done.ok()) notice(done.error().message);
}

void Mutations::unloaded(LoadedModule* module) {
  std::erase(modules_, module);
  entries_.clear();
  if (planted_ && planted_->module == module) planted_.reset();
}

const ptx::Instruction& Mutations::original(const LoadedModule* module,
                                            Device::CodePlace place) const {
  const bool changed = planted_ && planted_->module == module &&
                       planted_->place.function == place.function &&
                       planted_->place.instruction == place.instruction;
  if (changed) return planted_->original;
  return device_.ptx_of(*module).functions[place.function].code[place.instruction];
}

const std::vector<Mutations::Entry>& Mutations::entries() {
  if (!entries_.empty()) return entries_;
  for (LoadedModule* module : modules_) {
    const ptx::Module& ptx = device_.ptx_of(*module);
    for (uint32_t f = 0; f < ptx.functions.size(); ++f) {
      const ptx::Function& function = ptx.functions[f];
      for (uint32_t k = 0; k < function.code.size(); ++k) {
        const Device::CodePlace place{.function = f, .instruction = k};
        for (const auto& m : mutate::mutations_of(function, original(module, place))) {
          entries_.push_back({module, place, m.op, m.variant});
        }
      }
    }
  }
  return entries_;
}

uint64_t Mutations::count() { return entries().size(); }

Result<kv_simt_mutation> Mutations::at(uint64_t index) {
  if (index >= entries().size()) {
    return bad_input("mutation: expected an index below " + std::to_string(entries().size()) +
                     ", got " + std::to_string(index));
  }
  const Entry& entry = entries_[index];
  const ptx::Function& function = device_.ptx_of(*entry.module).functions[entry.place.function];
  const ptx::Instruction& ins = original(entry.module, entry.place);
  kv_simt_mutation out = {};
  out.struct_bytes = sizeof out;
  out.op = uint32_t(entry.op);
  out.variant = entry.variant;
  out.module = device_.hash_of(*entry.module);
  out.function = entry.place.function;
  out.instruction = entry.place.instruction;
  out.ptx_line = ins.ptx_line;
  put(out.kernel, demangled(function.name));
  put(out.source_file, ins.where.file);
  out.source_line = ins.where.line;
  put(out.inlined_at_file, ins.where.inlined_at_file);
  out.inlined_at_line = ins.where.inlined_at_line;
  put(out.op_name, mutate::operator_name(entry.op));
  put(out.before, mutate::changed_text(function, ins));
  for (const auto& m : mutate::mutations_of(function, ins)) {
    if (m.op != entry.op || m.variant != entry.variant) continue;
    put(out.after, mutate::changed_text(function, m.changed));
  }
  out.executions = device_.executions(*entry.module, entry.place);
  return out;
}

Result<void> Mutations::set(const kv_simt_mutation* mutation) {
  restore();
  wanted_.reset();
  if (!mutation) return {};
  wanted_ = *mutation;
  for (LoadedModule* module : modules_) {
    if (device_.hash_of(*module) == mutation->module) return plant(module);
  }
  return {};
}

void Mutations::restore() {
  if (!planted_) return;
  device_.restore_instruction(*planted_->module, planted_->place, planted_->original);
  planted_.reset();
}

Result<void> Mutations::plant(LoadedModule* module) {
  const Device::CodePlace place{.function = wanted_->function, .instruction = wanted_->instruction};
  const ptx::Module& ptx = device_.ptx_of(*module);
  const auto refuse = [&](const std::string& why) {
    return bad_input(
        "mutation " + std::to_string(wanted_->op) + "." + std::to_string(wanted_->variant) +
        " of instruction " + std::to_string(place.instruction) + " of function " +
        std::to_string(place.function) + " of module " + hex64(wanted_->module) + ": " + why);
  };
  if (place.function >= ptx.functions.size()) {
    return refuse("the module has " + std::to_string(ptx.functions.size()) + " functions");
  }
  const ptx::Function& function = ptx.functions[place.function];
  if (place.instruction >= function.code.size()) {
    return refuse("the function has " + std::to_string(function.code.size()) + " instructions");
  }
  const ptx::Instruction ins = function.code[place.instruction];
  for (const auto& m : mutate::mutations_of(function, ins)) {
    if (uint32_t(m.op) != wanted_->op || m.variant != wanted_->variant) continue;
    planted_ = Planted{.module = module, .place = place, .original = ins};
    device_.replace_instruction(*module, place, m.changed);
    return {};
  }
  return refuse("there is no such change of " + instruction_text(function, ins));
}

}  // namespace kv::simt::cudart
