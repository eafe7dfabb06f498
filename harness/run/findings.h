// Purpose: what the CPU device has found, as plain data.
// Contract: take_findings() returns the findings since the last call, each once; nothing on a GPU.
#pragma once

#include <vector>

#include "harness/plugin/runtime.h"
#include "harness/run/observation.h"

namespace kv {

std::vector<DeviceFinding> take_findings(const CudaRuntime& runtime);

}  // namespace kv
