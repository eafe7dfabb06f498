// Purpose: the mutation in force, and the list of those that the loaded modules allow.
// Contract: at most one mutation is in force. It names its module by content, so it may be set
// before the module is loaded; what it names must exist when it is. Work already launched must be
// complete when it changes.
// Example:  KV_RETURN_IF_ERROR(mutations.set(&chosen)); ... mutations.set(nullptr);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/core/result.h"
#include "harness/simt/device.h"
#include "harness/simt/mutate/mutations.h"

namespace kv::simt::cudart {

class Mutations {
 public:
  explicit Mutations(Device& device) : device_(device) {}

  void loaded(LoadedModule* module);
  void unloaded(LoadedModule* module);

  uint64_t count();
  Result<kv_simt_mutation> at(uint64_t index);
  Result<void> set(const kv_simt_mutation* mutation);

 private:
  struct Entry {
    LoadedModule* module = nullptr;
    Device::CodePlace place;
    mutate::Operator op = mutate::Operator::kCompare;
    uint32_t variant = 0;
  };
  struct Planted {
    LoadedModule* module = nullptr;
    Device::CodePlace place;
    ptx::Instruction original;
  };

  const std::vector<Entry>& entries();
  const ptx::Instruction& original(const LoadedModule* module, Device::CodePlace place) const;
  Result<void> plant(LoadedModule* module);
  void restore();

  Device& device_;
  std::vector<LoadedModule*> modules_;
  std::vector<Entry> entries_;  // of modules_; empty: to be made
  std::optional<kv_simt_mutation> wanted_;
  std::optional<Planted> planted_;
};

}  // namespace kv::simt::cudart
