// Purpose: the whole life of a worker process.
// Contract: loads the runtime and the plugin, says hello on kWorkerSocket, then runs one case after
// another until the parent hangs up. Uses the status page at kWorkerStatusPage. Returns the exit
// status of the process: 0 at the parent's hang-up, 3 when it was not started by kverify.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/plugin/loader.h"
#include "harness/plugin/runtime.h"

namespace kv {

/// Answers a kEngine frame.
using FrameServer = std::function<std::vector<std::byte>(std::span<const std::byte>)>;

struct WorkerOptions {
  DeviceKind device = DeviceKind::kCpu;
  std::string plugin_path;
  // Written after each case where not empty; CPU device only.
  std::string profile_path, lcov_path;
  std::string checks;  // of the CPU device, by name (check_names.h); "": all
  /// Who serves engine-level requests on this plugin; nobody by default.
  std::function<FrameServer(const LoadedPlugin&, const CudaRuntime&)> engine_server = {};
};

int run_worker(const WorkerOptions& options);

}  // namespace kv
