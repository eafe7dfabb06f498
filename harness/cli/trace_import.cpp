// `kverify trace import`: a serving trace becomes a case file.
#include <fmt/format.h>

#include "harness/case/json.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/cli/trace_cases.h"

namespace kv::cli {

Result<ExitCode> trace_import(const TraceOptions& options) {
  KV_ASSIGN_OR_RETURN(const TraceCase trace, make_trace_case(options));
  KV_RETURN_IF_ERROR(save_case(options.case_path, trace.c));
  const TraceWork work = trace_work(trace.c);
  Output(std::nullopt)
      .say(fmt::format("{}: {} requests, {} steps, {} tokens in the cache, {} pages at most\n"
                       "run it with: kverify replay {}\n",
                       options.case_path, work.requests, work.steps, work.appended_tokens,
                       work.pages_peak, options.case_path));
  return ExitCode::kPass;
}

}  // namespace kv::cli
