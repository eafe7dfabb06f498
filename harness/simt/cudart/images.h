// Purpose: what compiled code registers before main: fat binaries, their kernels and variables.
// Contract: registration only remembers; a module is loaded when one of its kernels or variables is
// first used, and it is the one whose architecture is the highest not above the simulated model.
// Nothing that a fat binary says is believed: a bad one yields errors at use, never a crash.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "harness/simt/cudart/mutations.h"
#include "harness/simt/cudart/profiler.h"
#include "harness/simt/device.h"

namespace kv::simt::cudart {

/// One fat binary.
struct Image {
  const void* wrapper = nullptr;
  std::map<uint32_t, LoadedModule*> modules;  // by model
};

struct KernelRecord {
  Image* image = nullptr;
  std::string name;                               // as in the PTX
  std::optional<uint32_t> dynamic_shared_chosen;  // by cudaFuncSetAttribute
  struct Resolved {
    Kernel* kernel = nullptr;
    KernelInfo info;
  };
  std::map<uint32_t, Resolved> resolved;  // by model

  uint64_t dynamic_shared_max(const KernelInfo& info) const;
};

struct VariableRecord {
  Image* image = nullptr;
  std::string name;
  uint64_t bytes = 0;
  void** managed = nullptr;  // where the host keeps the address of a __managed__ variable
};

class Images {
 public:
  Images(Device& device, Mutations& mutations, Profiler& profiler)
      : device_(device), mutations_(mutations), profiler_(profiler) {}

  Image* add(const void* wrapper);
  void add_kernel(Image* image, const void* host_function, const char* name);
  void add_variable(Image* image, const void* host_variable, VariableRecord record);
  /// Unloads the image's modules and forgets what it registered.
  void remove(Image* image);
  bool contains(const Image* image) const { return images_.contains(image); }

  /// By host function or by cudaKernel_t; null when unknown.
  KernelRecord* find_kernel(const void* function) const;

  struct KernelResult {
    cudaError_t error = cudaSuccess;
    std::string sentence = {};  // why not
    Kernel* kernel = nullptr;
    const KernelInfo* info = nullptr;
    bool ok() const { return error == cudaSuccess; }
  };
  KernelResult resolve(KernelRecord& record);

  struct SymbolResult {
    cudaError_t error = cudaSuccess;
    std::string sentence = {};
    uint64_t address = 0, bytes = 0;
    bool ok() const { return error == cudaSuccess; }
  };
  SymbolResult find_symbol(const void* host_variable);
  /// Gives the image's __managed__ variables their addresses.
  void place_managed(Image* image);

 private:
  struct ModuleResult {
    cudaError_t error = cudaSuccess;
    std::string sentence = {};
    LoadedModule* module = nullptr;
  };
  ModuleResult load(Image& image);
  SymbolResult find_symbol(const VariableRecord& variable);

  Device& device_;
  Mutations& mutations_;
  Profiler& profiler_;
  std::map<const Image*, std::unique_ptr<Image>> images_;
  // By host function. A library has hundreds, and every launch asks; the order decides nothing.
  std::unordered_map<const void*, std::unique_ptr<KernelRecord>> kernels_;
  std::set<const void*> handles_;                    // every KernelRecord, as a handle
  std::map<const void*, VariableRecord> variables_;  // by host variable
};

}  // namespace kv::simt::cudart
