// Purpose: what the production page manager makes of a trace, as lines and JSON, for `trace serve`
// and for `trace run --level engine`.
// Contract: prints to `output` as it goes; the JSON holds no times. Example:
//   KV_ASSIGN_OR_RETURN(const auto json, serving_tables(trace, options, output));
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/trace/trace.h"

namespace kv::cli {

/// Hits by pool, pages and fragmentation, both batchings, waits; a picture where one is asked for.
Result<nlohmann::ordered_json> serving_tables(const std::vector<TraceRequest>& trace,
                                              const TraceServeOptions& options,
                                              const Output& output);

}  // namespace kv::cli
