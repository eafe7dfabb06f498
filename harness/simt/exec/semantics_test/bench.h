// Purpose: runs one generated kernel on the CPU device.
// Contract: the device is reset first; every step that fails is a test failure that says why, and
// a finding is a failure too: these kernels have no bugs.
// Example:
//   Bench bench(module_text(form), form.sm);
//   auto in = bench.upload(bytes); auto out = bench.reserve(128);
//   if (bench.launch({.block = {32, 1, 1}}, {in, out}) != Bench::Ran::kToItsEnd) return;
//   auto result = bench.download(out, 128);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/simt/device.h"

namespace kv::simt::semantics {

struct LaunchShape {
  Dim3 grid = {}, block = {};
  uint32_t dynamic_shared_bytes = 0;
};

class Bench {
 public:
  Bench(const std::string& ptx, uint32_t model_sm, uint32_t rounding = KV_SIMT_ROUNDING_NEAREST);
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  uint64_t upload(const void* bytes, uint64_t count);
  template <class T>
  uint64_t upload(const std::vector<T>& values) {
    return upload(values.data(), values.size() * sizeof(T));
  }
  /// Bytes that hold zeros.
  uint64_t reserve(uint64_t bytes);
  enum class Ran { kToItsEnd, kUnsupported, kFailed };
  /// Anything but the end, or an instruction that the device does not know, is a test failure, and
  /// so is a finding. Parameters are 64-bit words.
  Ran launch(const LaunchShape& shape, const std::vector<uint64_t>& parameters);
  /// How a launch that may end in another way ended; findings are left alone.
  LaunchStatus launch_status(const LaunchShape& shape, const std::vector<uint64_t>& parameters);
  void download(uint64_t address, void* bytes, uint64_t count);
  template <class T>
  std::vector<T> download(uint64_t address, uint64_t count) {
    std::vector<T> values(count);
    download(address, values.data(), count * sizeof(T));
    return values;
  }
  bool ready() const { return kernel_ != nullptr; }

 private:
  Device& device_ = Device::instance();
  LoadedModule* module_ = nullptr;
  Kernel* kernel_ = nullptr;
};

}  // namespace kv::simt::semantics
