// Purpose: settings for programs that do not know the control table.
// Contract: KV_SIMT_MODEL (80, 89, 90), KV_SIMT_SEED (an integer), KV_SIMT_CHECKS ("all", "none" or
// a comma-separated list of memory, undefined, race, barrier, async, leak), KV_SIMT_REPORT (a file,
// or - for standard error), KV_SIMT_REPORT_JSON (a file, to whose name the process id is added),
// KV_SIMT_PROFILE and KV_SIMT_LCOV (files), KV_SIMT_TIME_LIMIT (seconds that the process may go on
// launching kernels; 0: for ever). A value that cannot be used is one Error.
// Example:  KV_SIMT_MODEL=90 KV_SIMT_CHECKS=memory,race KV_SIMT_REPORT=- ./program
#pragma once

#include <functional>
#include <string>

#include "harness/core/result.h"
#include "harness/simt/control/kv_simt_control.h"

namespace kv::simt::cudart {

struct Environment {
  kv_simt_config config;
  // Files; "" when not wanted.
  std::string report, report_json, profile, lcov;
  uint64_t time_limit_s = 0;  // 0: none
};

/// `variable` returns the value of an environment variable, or null. `defaults` fills what no
/// variable names.
Result<Environment> read_environment(const std::function<const char*(const char*)>& variable,
                                     const kv_simt_config& defaults);

}  // namespace kv::simt::cudart
