// Purpose: a worker process that has loaded its plugin and said what it is.
// Contract: whatever goes wrong until then is one error: a plugin that ends its process, or damages
// what it sends, is bad input.
// Example:  KV_ASSIGN_OR_RETURN(StartedWorker worker, start_worker({.plugin_path = path}));
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "harness/core/result.h"
#include "harness/plugin/runtime.h"
#include "harness/plugin/worker_process.h"
#include "harness/run/wire.h"

namespace kv {

struct WorkerStart {
  DeviceKind device = DeviceKind::kCpu;
  std::string plugin_path;
  std::string executable = "/proc/self/exe";  // a kverify
  std::chrono::milliseconds silence_max = std::chrono::seconds(60);
  uint64_t memory_bytes_max = 0;                // 0: default_worker_memory()
  std::string profile_path, lcov_path, checks;  // see WorkerOptions
};

struct StartedWorker {
  std::unique_ptr<WorkerProcess> process;
  Hello hello;
};

Result<StartedWorker> start_worker(const WorkerStart& start);

}  // namespace kv
