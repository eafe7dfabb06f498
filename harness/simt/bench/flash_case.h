// Purpose: the small case on the CPU device: 8 queries x 64 keys x head dimension 64 x 4 heads.
// Contract: one case at a time; the inputs are fixed. `prepare` allocates and uploads, as for a
// fresh case; `launch` runs the kernel once; both say whether everything went well.
#pragma once

#include <string>
#include <vector>

#include "harness/simt/bench/flash_parameters.h"
#include "harness/simt/device.h"

namespace kv::simt::bench {

inline constexpr int kQueries = 8, kKeys = 64, kHeads = 4, kDim = 64;

class FlashCase {
 public:
  /// `ptx`: the text of flash.cu.
  explicit FlashCase(const std::string& ptx);
  /// After this every launch runs with `checks`.
  bool prepare(uint32_t checks);
  /// One launch with 1 or 4 warps for each block.
  bool launch(uint32_t warps);
  /// Downloads the result: sum over its elements, to see that something was computed.
  double output_sum();

 private:
  Device& device_ = Device::instance();
  Kernel* kernels_[2] = {};
  std::vector<uint16_t> query_, key_, value_;
  FlashParameters parameters_ = {};
};

}  // namespace kv::simt::bench
