#include "impl/bench/device_data.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "kvattn/status.h"

namespace kvattn::bench {
namespace {

constexpr uint64_t kAllocationMin = 16, kDrawnBytes = uint64_t{1} << 20;

/// Each byte: a sign, and an exponent and fraction that leave out NaN and infinity in every format
/// (as the upper byte of an fp16: below 2).
std::vector<uint8_t> draw_numbers() {
  std::vector<uint8_t> bytes(kDrawnBytes);
  uint32_t state = 12345;
  for (uint8_t& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>((state >> 24 & 0x80) | (state >> 16) % 0x40);
  }
  return bytes;
}

}  // namespace

void fail(const std::string& what) {
  std::fprintf(stderr, "kvattn_bench: error: %s\n", what.c_str());
  std::exit(3);
}

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(sentence(what, ": ", cudaGetErrorString(error)));
}

DeviceMemory allocate(uint64_t bytes) {
  void* p = nullptr;
  check(cudaMalloc(&p, std::max(bytes, kAllocationMin)), "cudaMalloc");
  DeviceMemory memory(p);
  check(cudaMemset(p, 0, std::max(bytes, kAllocationMin)), "cudaMemset");
  return memory;
}

DeviceMemory upload(const std::vector<int32_t>& values) {
  const uint64_t bytes = values.size() * sizeof(int32_t);
  DeviceMemory memory = allocate(bytes);
  check(cudaMemcpy(memory.get(), values.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  return memory;
}

DeviceMemory allocate_numbers(uint64_t bytes) {
  static const std::vector<uint8_t> drawn = draw_numbers();
  DeviceMemory memory = allocate(bytes);
  char* const target = static_cast<char*>(memory.get());
  uint64_t done = std::min<uint64_t>(bytes, drawn.size());
  check(cudaMemcpy(target, drawn.data(), done, cudaMemcpyHostToDevice), "cudaMemcpy");
  while (done < bytes) {
    const uint64_t more = std::min(done, bytes - done);
    check(cudaMemcpy(target + done, target, more, cudaMemcpyDeviceToDevice), "cudaMemcpy");
    done += more;
  }
  return memory;
}

}  // namespace kvattn::bench
