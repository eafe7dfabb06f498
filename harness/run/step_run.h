// Purpose: one step of a case on a plugin: plan, append and attend for every layer, read back.
// Contract: see kernel_run.h. An error is the harness's own (out of device memory, a broken
// runtime); what the plugin does wrong is in the observation.
#pragma once

#include <optional>
#include <vector>

#include "harness/case/timeline.h"
#include "harness/run/kernel_run.h"
#include "harness/run/pool_memory.h"
#include "harness/run/scale_memory.h"

namespace kv {

struct LayerPools {
  PoolMemory key;
  std::optional<PoolMemory> value;  // none when V lies in K
  ScaleMemory key_scale, value_scale;

  /// Calls visit(PoolMemory&) for each.
  void each(auto visit) {
    visit(key);
    if (value) visit(*value);
  }
  Tensor value_tensor(const Shape& shape) const {
    return value ? value->tensor() : key.tensor(shape.head_dim_v);
  }
};

struct StepContext {
  const Case& c;
  const Bench& bench;
  const kv_attention_shape& shape;
  void* stream;
  std::vector<LayerPools>& pools;  // [layers]
};

Result<OpObservation> run_step(const StepContext& context, const Timeline& timeline,
                               const PlannedStep& step);

}  // namespace kv
