// Purpose: drives a kernel-level plugin through a case, operation by operation, in the worker.
// Contract: kverify owns all memory: pools, tables, inputs, outputs, workspace; each is as large as
// its tensor spans, inputs are read-only, unused bytes are poison, outputs start as the canary. The
// sink gets one observation for each operation that ran, in order; the returned RunEnd says how it
// ended. A plugin that refuses or fails ends the run after that operation. Nothing is judged here.
// On the CPU device the device is reset first, so addresses do not depend on earlier cases.
// Example: RunEnd end = run_kernel_case(c, {plugin, runtime, status}, [&](auto& o) { send(o); });
#pragma once

#include <functional>

#include "harness/case/case.h"
#include "harness/plugin/loader.h"
#include "harness/plugin/runtime.h"
#include "harness/plugin/status_page.h"
#include "harness/run/observation.h"
#include "harness/simt/control/kv_simt_control.h"

namespace kv {

/// What a worker runs cases with.
struct Bench {
  const LoadedPlugin& plugin;
  const CudaRuntime& runtime;
  StatusPage& status;
  uint32_t checks = KV_SIMT_CHECK_ALL;  // of the CPU device
};

RunEnd run_kernel_case(const Case& c, const Bench& bench,
                       const std::function<void(const OpObservation&)>& sink);

/// Declared facts of the plugin, for the judge.
PluginFacts plugin_facts(const LoadedPlugin& plugin);

}  // namespace kv
