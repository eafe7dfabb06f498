// Purpose: the subcommands of kverify, as functions of plain options.
// Contract: each prints what a person wants to know to standard output and progress to standard
// error, and returns the exit code (report/exit_code.h). An Error is printed by the caller.
// Example: Result<ExitCode> code = check({.cases = 50, .bench = {.plugin_path = path}});
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/core/result.h"
#include "harness/plugin/runtime.h"
#include "harness/report/exit_code.h"

namespace kv::cli {

/// What cases are run on; common to all commands that run any.
struct BenchOptions {
  DeviceKind device = DeviceKind::kCpu;
  std::string plugin_path;   // "": default_plugin_path()
  double call_seconds = 60;  // longest call into the plugin, more for large cases
  uint64_t memory_mib = 0;   // of a worker process; 0: default_worker_memory()
};

struct CheckOptions {
  std::optional<uint64_t> cases;  // drawn ones; default 200, unlimited with minutes
  std::optional<double> minutes;
  uint64_t seed = 0;
  BenchOptions bench;
  std::optional<std::string> json_path;  // "": standard output
  std::string corpus = "corpus";  // seeds/ and regression/ are replayed first, where they exist
  std::string out = "corpus/crashing";
  bool keep_going = false;
};
Result<ExitCode> check(const CheckOptions& options);

struct ReplayOptions {
  std::string case_path;
  BenchOptions bench;
  std::optional<std::string> json_path;
};
Result<ExitCode> replay(const ReplayOptions& options);

Result<ExitCode> show(const std::string& case_path);

struct TraceOptions {
  std::string trace_path;
  uint64_t requests = 8;
  double scale = 1;
  std::string case_path;                // that `import` writes
  std::string out = "corpus/crashing";  // for the case of a finding of `run`
  BenchOptions bench;                   // of `trace run`
  std::optional<std::string> json_path;
};
Result<ExitCode> trace_import(const TraceOptions& options);
Result<ExitCode> trace_run(const TraceOptions& options);

Result<ExitCode> doctor(const BenchOptions& bench);

/// Our own library, beside the program: ../lib/libkvattn_plugin.so.
std::string default_plugin_path();

}  // namespace kv::cli
