// Purpose: memory of the device and what lies in it, for the programs of this room.
// Contract: a call of CUDA that fails ends the program with a sentence and exit code 3: something
// is missing on this machine.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kvattn::bench {

[[noreturn]] void fail(const std::string& what);
void check(cudaError_t error, const char* what);

struct Freed {
  void operator()(void* p) const { cudaFree(p); }
};
using DeviceMemory = std::unique_ptr<void, Freed>;

/// Zeros.
DeviceMemory allocate(uint64_t bytes);

DeviceMemory upload(const std::vector<int32_t>& values);

/// Bytes that are finite numbers of both signs as fp16, e4m3, e5m2 and int8, without a pattern:
/// products of zeros take less power, and so less time, than others.
DeviceMemory allocate_numbers(uint64_t bytes);

}  // namespace kvattn::bench
