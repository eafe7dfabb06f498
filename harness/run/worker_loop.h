// Purpose: the whole life of a worker process.
// Contract: loads the runtime and the plugin, says hello on kWorkerSocket, then runs one case after
// another until the parent hangs up. Uses the status page at kWorkerStatusPage. Returns the exit
// status of the process: 0 at the parent's hang-up, 3 when it was not started by kverify.
#pragma once

#include <string>

#include "harness/plugin/runtime.h"

namespace kv {

struct WorkerOptions {
  DeviceKind device = DeviceKind::kCpu;
  std::string plugin_path;
};

int run_worker(const WorkerOptions& options);

}  // namespace kv
