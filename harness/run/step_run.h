// Purpose: one step of a case on a plugin: plan, append and attend for every layer, read back.
// Contract: see kernel_run.h. An error is the harness's own (out of device memory, a broken
// runtime); what the plugin does wrong is in the observation.
#pragma once

#include <vector>

#include "harness/case/timeline.h"
#include "harness/run/kernel_run.h"
#include "harness/run/pool_memory.h"
#include "harness/run/scale_memory.h"

namespace kv {

struct LayerPools {
  PoolMemory key, value;
  ScaleMemory key_scale, value_scale;
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
