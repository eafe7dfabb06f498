// Purpose: the CPU device as a C++ object: memory, modules, launches, findings. The drop-in
// libcudart is a thin skin over it; tests and benchmarks use it directly.
// Contract: not thread safe; one Device for each process is the rule (device addresses lie in one
// fixed virtual range). All methods are deterministic functions of the calls made since reset().
// Example:
//   Device& d = Device::instance();
//   auto m = d.load_module(ptx_text);  auto k = d.find_kernel(*m, "flash_fwd");
//   d.launch({.kernel = *k, .grid = {4, 2, 1}, .block = {32, 1, 1}, .parameters = bytes});
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/result.h"
#include "harness/simt/control/kv_simt_control.h"

namespace kv::simt {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

namespace ptx {
struct Instruction;
struct Module;
}  // namespace ptx

struct Kernel;  // decoded on first launch; owned by its module
struct LoadedModule;

struct KernelInfo {
  std::string name;
  std::vector<uint64_t> parameter_offsets, parameter_sizes;  // bytes, in order
  uint64_t parameter_bytes = 0;
  uint32_t static_shared_bytes = 0, dynamic_shared_offset = 0;
  uint32_t local_bytes = 0;
  uint32_t registers = 0;  // after allocation, 32-bit slots for each thread (an estimate of ptxas')
  uint32_t max_threads = 1024;
};

struct LaunchSpec {
  Kernel* kernel = nullptr;
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  std::span<const uint8_t> parameters;  // KernelInfo::parameter_bytes bytes
  bool cooperative = false;
};

/// How a launch ended. A finding does not fail a launch by itself; a fault stops the kernel.
enum class LaunchStatus {
  kCompleted,
  kFaulted,     // an address that the kernel may not touch
  kMisaligned,  // an address that the access is not aligned to
  kHung,
  kLate,  // see set_deadline
  kTrapped,
  kAsserted,  // a failed assert()
  kUnsupported
};

/// What orders the work that runs now (a launch, copies, fills) against work that has run: races
/// between streams are looked for among work that nothing orders.
struct WorkOrder {
  uint64_t work = 0;                     // names it
  bool tracked = false;                  // other work may overlap it: remember what it touches
  std::vector<uint64_t> unordered = {};  // tracked work that ran, and is not ordered before it
};

class Device {
 public:
  /// An environment error where this machine gives no room for the device's addresses.
  static Result<void> available();
  /// Aborts where it is not available.
  static Device& instance();

  Result<void> configure(const kv_simt_config& config);
  const kv_simt_config& config() const;
  void reset();

  /// Device address of `bytes` fresh, undefined bytes, aligned to 256. Zero bytes give address 0.
  Result<uint64_t> allocate(uint64_t bytes);
  Result<void> free(uint64_t address);
  /// Copies bytes; the definedness travels with device-to-device copies. Addresses may also point
  /// to host memory (always defined), as cudaMemcpyDefault allows. Every device byte must lie in
  /// one live allocation; otherwise an API finding and an error.
  Result<void> copy(uint64_t to, uint64_t from, uint64_t bytes);
  Result<void> fill(uint64_t address, uint8_t value, uint64_t bytes);
  /// True if the address lies in the device's range (live or not).
  bool is_device_address(uint64_t address) const;
  Result<void> set_access(uint64_t address, uint64_t bytes, uint32_t access);
  Result<void> set_defined(uint64_t address, uint64_t bytes, bool defined);
  /// The first undefined bytes of a range inside one live allocation; none where `bytes` is 0.
  struct UndefinedRun {
    uint64_t offset = 0, bytes = 0;
  };
  Result<UndefinedRun> first_undefined(uint64_t address, uint64_t bytes);
  /// A finding for them, if there are any and undefined data is looked for; `what` names the range.
  Result<void> report_undefined(uint64_t address, uint64_t bytes, std::string_view what);

  /// Parses a module; kernels are decoded when first needed. Bad PTX is one error with its line.
  Result<LoadedModule*> load_module(std::string ptx_text);
  void unload_module(LoadedModule* module);
  Result<Kernel*> find_kernel(LoadedModule* module, std::string_view name);
  Result<KernelInfo> kernel_info(Kernel* kernel);
  /// Device address and size of a global or constant variable.
  struct Symbol {
    uint64_t address = 0, bytes = 0;
  };
  Result<Symbol> find_symbol(LoadedModule* module, std::string_view name);

  /// The PTX of a module, and a hash of its text, which names it from run to run.
  const ptx::Module& ptx_of(const LoadedModule& module) const;
  const LoadedModule& module_of(const Kernel& kernel) const;
  uint64_t hash_of(const LoadedModule& module) const;
  /// One instruction, by position in the module.
  struct CodePlace {
    uint32_t function = 0, instruction = 0;
  };
  /// Executes `with` in the place of an instruction, and counts in counters().mutated_executions
  /// how often a warp got there.
  void replace_instruction(LoadedModule& module, CodePlace place, const ptx::Instruction& with);
  /// Back to the original, which the caller has kept.
  void restore_instruction(LoadedModule& module, CodePlace place, const ptx::Instruction& original);
  /// How often a warp executed an instruction while KV_SIMT_COLLECT_EXECUTIONS was on, since
  /// clear_executions().
  uint64_t executions(const LoadedModule& module, CodePlace place) const;
  void clear_executions();
  /// Counters of branch edges: 8 bits each, owned by the caller; count 0 turns them off.
  void set_edge_counters(std::span<uint8_t> counters);

  /// Executes the whole grid now. Errors are misuse (bad grid, too much shared memory).
  Result<LaunchStatus> launch(const LaunchSpec& spec);

  /// A launch that still runs `at` this time ends as late, with a finding that says where each warp
  /// is. The one thing that depends on a clock; unset (the default) it never happens.
  void set_deadline(std::chrono::steady_clock::time_point at);

  /// Holds for what is launched, copied and filled from now on.
  void set_order(WorkOrder order);

  /// Findings since reset.
  uint64_t finding_count() const;
  const std::vector<kv_simt_finding>& findings() const;
  void clear_findings();
  void add_finding(const kv_simt_finding& finding);
  kv_simt_counters counters() const;
  void clear_counters();

 private:
  Device();
  ~Device();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kv::simt
