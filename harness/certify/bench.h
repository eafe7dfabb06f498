// Purpose: what cases are run on: device, plugin, and the limits of the process that runs them.
// Contract: plain values, common to all commands that run any case.
// Example: Examiner::start({.plugin_path = path, .checks = "race,memory"});
#pragma once

#include <cstdint>
#include <string>

#include "harness/plugin/runtime.h"

namespace kv {

/// What cases are run on; common to all commands that run any.
struct BenchOptions {
  DeviceKind device = DeviceKind::kCpu;
  std::string plugin_path;                    // "": default_plugin_path()
  std::string executable = "/proc/self/exe";  // a kverify, whose worker runs the cases
  double call_seconds = 60;                   // longest call into the plugin, more for large cases
  uint64_t memory_mib = 0;                    // of a worker process; 0: default_worker_memory()
  std::string suppressions_path;              // findings that are accepted; "": none
  std::string checks;                         // of the CPU device; "": all, leaks listed only
};

/// Our own library, beside the program: ../lib/libkvattn_plugin.so.
std::string default_plugin_path();

}  // namespace kv
