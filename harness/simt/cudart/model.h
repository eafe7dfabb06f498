// Purpose: what the runtime tells programs about the simulated device.
// Contract: figures of a public product of each architecture, as data; only sizes that programs
// decide by. Times, clocks and identities are fixed, so nothing depends on the machine.
// Source: CUDA C++ Programming Guide, "Compute Capabilities"; NVIDIA A100, L40S and H100 data
// sheets.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>

namespace kv::simt::cudart {

struct Model {
  uint32_t sm = 80;  // 80, 89 or 90
  const char* name = "";
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int blocks_per_multiprocessor = 0;
  int shared_per_multiprocessor_bytes = 0;
  int shared_per_block_optin_bytes = 0;
  int l2_bytes = 0;
  int bus_bits = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0;
};

inline constexpr int kSharedPerBlockBytes = 48 * 1024;     // without asking for more
inline constexpr int kReservedSharedPerBlockBytes = 1024;  // by the system, for each block
inline constexpr int kRegistersPerMultiprocessor = 65536;
inline constexpr int kWarpLanes = 32;

/// The model of an architecture that kv_simt_config accepts.
const Model& model_of(uint32_t sm);

cudaDeviceProp properties_of(const Model& model, uint64_t memory_bytes);
/// Nothing for an attribute that this library does not know.
std::optional<int> attribute_of(const Model& model, uint64_t memory_bytes,
                                cudaDeviceAttr attribute);

}  // namespace kv::simt::cudart
