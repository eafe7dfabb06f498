// Purpose: small CUDA programs with one fault each that can be planted, and their registry.
// Contract: a program is written once; with `faulty` false it is correct, and every checker must
// stay silent. The line that must be named when the fault is planted ends in `// FAULT: <program>`;
// `// FAULT: <program> (host)` marks a fault of host code, whose findings have no line. Several
// lines may be marked where the two sides of a race may be named in either order.
// Example:
//   template <bool kFaulty> __global__ void scale(float* x, int n) {
//     const int i = threadIdx.x;
//     if (i < n + kFaulty) x[i] *= 2;  // FAULT: scale_tail
//   }
//   KV_PROGRAM(scale_tail, KV_SIMT_KIND_OUT_OF_BOUNDS) {
//     DeviceArray<float> x(std::vector<float>(31, 1.0f));
//     KV_LAUNCH(scale, 1, 32, 0, x.get(), 31);
//     return x.read() == std::vector<float>(31, 2.0f);
//   }
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <vector>

#include "harness/simt/control/kv_simt_control.h"

namespace kv::simt::programs {

struct Program {
  const char* name = nullptr;
  const char* file = nullptr;  // of its source
  uint32_t kind = 0;           // KV_SIMT_KIND_* of the planted fault
  /// True if it computed what it should; what a faulty run computes is not looked at.
  bool (*run)(bool faulty) = nullptr;
  /// The fault shows only in some legal orders of the streams: schedule seed 0 must meet one, which
  /// is what its newest-first order is for; other seeds may not.
  bool needs_luck = false;
};

inline void PrintTo(const Program& program, std::ostream* out) { *out << program.name; }

std::vector<Program>& programs();

struct Registration {
  explicit Registration(const Program& program) { programs().push_back(program); }
};

#define KV_PROGRAM(name, kind) KV_PROGRAM_(name, kind, false)
#define KV_STREAM_PROGRAM(name, kind) KV_PROGRAM_(name, kind, true)
#define KV_PROGRAM_(name, kind, needs_luck)                            \
  static bool name(bool faulty);                                       \
  static const ::kv::simt::programs::Registration registration_##name( \
      {#name, __FILE__, kind, name, needs_luck});                      \
  static bool name([[maybe_unused]] bool faulty)

/// Launches kernel<true> or kernel<false>, as `faulty` says.
#define KV_LAUNCH(kernel, grid, block, shared, ...)            \
  (faulty ? kernel<true><<<grid, block, shared>>>(__VA_ARGS__) \
          : kernel<false><<<grid, block, shared>>>(__VA_ARGS__))
#define KV_LAUNCH_IN(stream, kernel, grid, block, ...)            \
  (faulty ? kernel<true><<<grid, block, 0, stream>>>(__VA_ARGS__) \
          : kernel<false><<<grid, block, 0, stream>>>(__VA_ARGS__))

/// Device memory that is freed at the end of its scope.
template <class T>
class DeviceArray {
 public:
  /// Undefined content.
  explicit DeviceArray(size_t count) : count_(count) { cudaMalloc(&data_, bytes()); }
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) {
    cudaMemcpy(data_, host.data(), bytes(), cudaMemcpyHostToDevice);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* get() const { return data_; }
  size_t bytes() const { return count_ * sizeof(T); }
  /// Waits for the legacy default stream, and so for blocking streams.
  std::vector<T> read() const {
    std::vector<T> host(count_);
    cudaMemcpy(host.data(), data_, bytes(), cudaMemcpyDeviceToHost);
    return host;
  }

 private:
  T* data_ = nullptr;
  size_t count_ = 0;
};

/// first, first + 1, ...
template <class T>
std::vector<T> counting(size_t count, T first = T(0)) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

inline bool succeeded() { return cudaDeviceSynchronize() == cudaSuccess; }

}  // namespace kv::simt::programs
