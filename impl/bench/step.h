// Purpose: one step of workloads.h with everything that a call of attend() takes, on the device.
// Contract: deterministic; fails as device_data.h says.
// Example: Step step(workload, multiprocessors(), 1); step.launch(0);
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "impl/bench/device_data.h"
#include "impl/bench/workloads.h"
#include "kvattn/attention.h"

namespace kvattn::bench {

/// Of device 0.
uint32_t multiprocessors();

class Step {
 public:
  /// `copies` caches, of which run i uses number i % copies.
  Step(const Workload& w, uint32_t multiprocessors, int64_t copies);

  /// Enqueues run number `run` on the default stream.
  void launch(int64_t run);
  std::string_view variant() const { return variant_name(plan_); }

 private:
  struct Cache {
    TensorView key, value;
  };

  void take_mask(const Workload& w);
  void take_scales(const Workload& w, int64_t pages);
  void* keep(DeviceMemory memory);
  TensorView tensor(std::vector<int64_t> shape, DType dtype, DeviceMemory memory);
  TensorView zeros(std::vector<int64_t> shape, DType dtype);
  TensorView indices(const std::vector<int32_t>& values);

  AttentionShape shape_;
  Plan plan_;
  AttendCall call_;
  std::vector<Cache> caches_;
  std::vector<DeviceMemory> memory_;
};

}  // namespace kvattn::bench
