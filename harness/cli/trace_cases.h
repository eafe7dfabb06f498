// Purpose: a serving trace as a case, for both trace commands.
// Contract: errors are those of harness/trace, or of the case that results.
// Example: KV_ASSIGN_OR_RETURN(const TraceCase trace, make_trace_case(options));
#pragma once

#include <vector>

#include "harness/case/case.h"
#include "harness/cli/commands.h"
#include "harness/core/result.h"

namespace kv::cli {

struct TraceCase {
  Case c;
  uint64_t requests = 0, prompt_tokens = 0, output_tokens = 0;  // of the file, unscaled
};
Result<TraceCase> make_trace_case(const TraceOptions& options);

/// What the case does: counted by walking its operations.
struct TraceWork {
  uint64_t requests = 0, steps = 0, appended_tokens = 0, query_rows = 0, pages_peak = 0;
  std::vector<uint64_t> op_work;  // multiply-adds of each operation, for an estimate of the rest
  uint64_t total_work = 0;
};
TraceWork trace_work(const Case& c);

}  // namespace kv::cli
