#include "harness/simt/cudart/launch.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/simt/cudart/errors.h"

namespace kv::simt::cudart {
namespace {

constexpr uint64_t kRegistersUnit = 8;      // registers of a thread are rounded up to this
constexpr uint64_t kRegistersMax = 256;     // for one thread, rounded up
constexpr uint64_t kSharedUnitBytes = 128;  // shared memory of a block is rounded up to this
constexpr uint32_t kGridMax[3] = {0x7fffffff, 65535, 65535};
constexpr uint32_t kBlockMax[3] = {1024, 1024, 64};

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/// For one thread. The device's figure is an estimate; a real compiler also keeps a block of the
/// kernel's launch bounds launchable.
uint64_t registers_of(const KernelInfo& info) {
  const uint64_t threads = round_up(std::max(info.max_threads, 1u), kWarpLanes);
  const uint64_t most = std::min(kRegistersPerMultiprocessor / threads, kRegistersMax);
  return std::clamp(round_up(info.registers, kRegistersUnit), kRegistersUnit, most);
}

std::string show(dim3 d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

uint64_t volume(dim3 d) { return uint64_t{d.x} * d.y * d.z; }

/// Why the launch is refused: an error and, for the finding, a sentence.
struct Refusal {
  cudaError_t error = cudaSuccess;
  std::string sentence;
};

Refusal check_shape(const LaunchCall& call) {
  const uint32_t grid[3] = {call.grid.x, call.grid.y, call.grid.z};
  const uint32_t block[3] = {call.block.x, call.block.y, call.block.z};
  for (int i = 0; i < 3; ++i) {
    if (grid[i] == 0 || grid[i] > kGridMax[i]) {
      return {cudaErrorInvalidConfiguration, "grid " + show(call.grid) +
                                                 " has a dimension of 0 or "
                                                 "above (2147483647, 65535, 65535)"};
    }
    if (block[i] == 0 || block[i] > kBlockMax[i]) {
      return {cudaErrorInvalidConfiguration, "block " + show(call.block) +
                                                 " has a dimension of 0 "
                                                 "or above (1024, 1024, 64)"};
    }
  }
  if (volume(call.block) > 1024) {
    return {cudaErrorInvalidConfiguration, "block " + show(call.block) + " has " +
                                               std::to_string(volume(call.block)) +
                                               " threads, at most 1024"};
  }
  return {};
}

Refusal check_resources(const Runtime& runtime, const LaunchCall& call, const KernelRecord& record,
                        const KernelInfo& info) {
  if (volume(call.block) > info.max_threads) {
    return {cudaErrorInvalidValue, "block " + show(call.block) + " has more threads than the " +
                                       std::to_string(info.max_threads) +
                                       " of the kernel's launch bounds"};
  }
  const uint64_t allowed = record.dynamic_shared_max(info);
  if (call.dynamic_shared_bytes > allowed) {
    return {cudaErrorInvalidValue,
            std::to_string(call.dynamic_shared_bytes) +
                " bytes of dynamic shared memory, at most " + std::to_string(allowed) +
                " without raising cudaFuncAttributeMaxDynamicSharedMemorySize"};
  }
  if (!call.cooperative) return {};
  const int resident = resident_blocks(
      runtime.model(), info, static_cast<uint32_t>(volume(call.block)), call.dynamic_shared_bytes);
  const uint64_t most = static_cast<uint64_t>(resident) * runtime.model().multiprocessors;
  if (volume(call.grid) > most) {
    return {cudaErrorCooperativeLaunchTooLarge, std::to_string(volume(call.grid)) +
                                                    " blocks in a cooperative launch, at most " +
                                                    std::to_string(most) + " are resident at once"};
  }
  return {};
}

Result<std::vector<uint8_t>> pack(const KernelInfo& info, void** arguments) {
  std::vector<uint8_t> bytes(info.parameter_bytes);
  for (size_t i = 0; i < info.parameter_offsets.size(); ++i) {
    if (!arguments || !arguments[i]) {
      return bad_input("argument " + std::to_string(i) + " of " +
                       std::to_string(info.parameter_offsets.size()) + " is a null pointer");
    }
    std::memcpy(bytes.data() + info.parameter_offsets[i], arguments[i], info.parameter_sizes[i]);
  }
  return bytes;
}

cudaError_t error_of(LaunchStatus status) {
  switch (status) {
    case LaunchStatus::kCompleted:
      return cudaSuccess;
    case LaunchStatus::kFaulted:
      return cudaErrorIllegalAddress;
    case LaunchStatus::kMisaligned:
      return cudaErrorMisalignedAddress;
    case LaunchStatus::kHung:
    case LaunchStatus::kLate:
      return cudaErrorLaunchTimeout;
    case LaunchStatus::kTrapped:
      return cudaErrorLaunchFailure;
    case LaunchStatus::kAsserted:
      return cudaErrorAssert;
    case LaunchStatus::kUnsupported:
      return cudaErrorNotSupported;
  }
  return cudaErrorUnknown;
}

struct Prepared {
  LaunchSpec spec;
  std::vector<uint8_t> parameters;
  std::string kernel, call;
  KernelInfo info;
};

cudaError_t execute(Runtime& runtime, const Prepared& prepared) {
  LaunchSpec spec = prepared.spec;
  spec.parameters = prepared.parameters;
  const uint64_t before = runtime.device.counters().warp_instructions;
  runtime.profiler.begin();
  const auto status = runtime.device.launch(spec);
  runtime.profiler.end(spec, prepared.info);
  const uint64_t after = runtime.device.counters().warp_instructions;
  runtime.timeline.advance(after > before ? after - before : 0);
  runtime.tally.executed();
  runtime.is_late |= status.ok() && *status == LaunchStatus::kLate;
  if (status.ok()) return error_of(*status);
  runtime.report_misuse(prepared.call, prepared.kernel + ": " + status.error().message);
  return status.error().kind == ErrorKind::kUnsupported ? cudaErrorNotSupported
                                                        : cudaErrorLaunchFailure;
}

Dim3 as_dim3(dim3 d) { return {.x = d.x, .y = d.y, .z = d.z}; }

}  // namespace

int resident_blocks(const Model& model, const KernelInfo& info, uint32_t block_threads,
                    uint64_t dynamic_shared_bytes) {
  if (block_threads == 0 || block_threads > info.max_threads) return 0;
  const uint32_t warps = (block_threads + kWarpLanes - 1) / kWarpLanes;
  const uint64_t registers = registers_of(info) * kWarpLanes * warps;
  const uint64_t asked = info.static_shared_bytes + dynamic_shared_bytes;
  if (asked > static_cast<uint64_t>(model.shared_per_block_optin_bytes)) return 0;
  const uint64_t shared = round_up(asked + kReservedSharedPerBlockBytes, kSharedUnitBytes);
  const uint64_t limits[] = {
      static_cast<uint64_t>(model.blocks_per_multiprocessor),
      static_cast<uint64_t>(model.threads_per_multiprocessor) / (warps * kWarpLanes),
      kRegistersPerMultiprocessor / registers,
      static_cast<uint64_t>(model.shared_per_multiprocessor_bytes) / shared,
  };
  return static_cast<int>(*std::min_element(std::begin(limits), std::end(limits)));
}

FoundKernel find_kernel(Runtime& runtime, const char* call, const void* function) {
  KernelRecord* record = runtime.images.find_kernel(function);
  if (!record) {
    runtime.report_misuse(call, "no such kernel was registered");
    return {.error = cudaErrorInvalidDeviceFunction};
  }
  const auto resolved = runtime.images.resolve(*record);
  if (resolved.ok()) return {.record = record, .kernel = resolved.kernel, .info = resolved.info};
  if (resolved.error == cudaErrorInvalidDeviceFunction) {
    runtime.report_misuse(call, record->name + ": " + resolved.sentence);
  } else {  // no PTX for this device, damaged PTX, or an instruction that the device does not know
    runtime.report_unsupported(demangled(record->name), resolved.sentence);
  }
  return {.error = resolved.error};
}

cudaError_t launch(Runtime& runtime, const LaunchCall& call) {
  const auto refuse = [&](cudaError_t error, const std::string& sentence) {
    runtime.report_misuse(call.name, sentence);
    return error;
  };
  Stream* stream = stream_of(runtime, call.stream, call.name);
  if (!stream) return cudaErrorInvalidResourceHandle;
  const FoundKernel found = find_kernel(runtime, call.name, call.function);
  if (found.error != cudaSuccess) return found.error;
  const KernelRecord* record = found.record;
  if (const Refusal no = check_shape(call); no.error != cudaSuccess) {
    return refuse(no.error, record->name + ": " + no.sentence);
  }
  const KernelInfo& info = *found.info;
  if (const Refusal no = check_resources(runtime, call, *record, info); no.error != cudaSuccess) {
    return refuse(no.error, record->name + ": " + no.sentence);
  }
  auto parameters = pack(info, call.arguments);
  if (!parameters.ok()) {
    return refuse(cudaErrorInvalidValue, record->name + ": " + parameters.error().message);
  }
  auto prepared = std::make_shared<const Prepared>(
      Prepared{.spec = {.kernel = found.kernel,
                        .grid = as_dim3(call.grid),
                        .block = as_dim3(call.block),
                        .dynamic_shared_bytes = static_cast<uint32_t>(call.dynamic_shared_bytes),
                        .parameters = {},
                        .cooperative = call.cooperative},
               .parameters = std::move(*parameters),
               .kernel = record->name,
               .call = call.name,
               .info = info});
  runtime.tally.issued();
  return runtime.submit(*stream,
                        {.run = [&runtime, prepared] { return execute(runtime, *prepared); }});
}

}  // namespace kv::simt::cudart
