// Purpose: what the runtime knows about memory: whose an address is, and how long it lives.
// Contract: this table mirrors the Device's live allocations, so that a call can be judged when it
// is made. A device address is a host address: managed and pinned memory are device allocations
// that count as defined, and kernels may use them. Ranges never overlap. Example:
//   Result<uint64_t> a = memory.allocate(bytes, Owner::kDevice);
//   const Range* range = memory.find(*a + 5);  // the allocation that holds the byte
#pragma once

#include <cstdint>
#include <map>

#include "harness/core/result.h"
#include "harness/simt/device.h"

namespace kv::simt::cudart {

enum class Owner : uint8_t {
  kDevice,      // cudaMalloc
  kPool,        // cudaMallocAsync: freeing it does not wait for the device
  kManaged,     // cudaMallocManaged: host and device see it
  kPinned,      // cudaMallocHost
  kRegistered,  // cudaHostRegister: the program's own; kernels cannot reach it
  kSymbol,      // a __device__ or __constant__ variable whose address the program has seen
};

struct Range {
  uint64_t base = 0;
  uint64_t bytes = 0;
  Owner owner = Owner::kDevice;
  uint64_t number = 0;  // 1-based order of allocation since reset
};

/// Where the bytes of a copy lie.
enum class Place : uint8_t { kPageable, kPinned, kManaged, kDevice, kInvalid };

class Memory {
 public:
  explicit Memory(Device& device) : device_(device) {}

  /// Zero bytes give address 0.
  Result<uint64_t> allocate(uint64_t bytes, Owner owner);
  /// `base` must be the start of a live allocation; if not, the Device adds a finding.
  Result<void> free(uint64_t base);

  bool register_host(uint64_t base, uint64_t bytes);
  bool unregister_host(uint64_t base);
  void note_symbol(uint64_t base, uint64_t bytes);

  /// The live range that holds the address, or null.
  const Range* find(uint64_t address) const;
  Place place(uint64_t address, uint64_t bytes) const;
  uint64_t device_bytes() const { return device_bytes_; }
  /// In ascending order of address.
  const std::map<uint64_t, Range>& ranges() const { return ranges_; }

  /// After Device::reset(): allocations are gone; variables and the program's own memory stay.
  void forget_allocations();

 private:
  Device& device_;
  std::map<uint64_t, Range> ranges_;
  uint64_t device_bytes_ = 0;
  uint64_t count_ = 0;
};

/// True for what cudaFree and the leak check are about.
bool is_device_allocation(Owner owner);

}  // namespace kv::simt::cudart
