#include <fmt/format.h>

#include "harness/case/problem.h"
#include "harness/case/text_file.h"
#include "harness/trace/trace.h"
#include "harness/trace/trace_limits.h"

namespace kv {

Result<std::vector<TraceRequest>> read_trace(const std::string& path) {
  const bool csv = path.ends_with(".csv");
  if (!csv && !path.ends_with(".jsonl")) {
    return bad_input(fmt::format("{}: expected a trace named *.csv (Azure) or *.jsonl (Mooncake)",
                                 in_quotes(path)));
  }
  KV_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, limits::kTraceFileBytesMax));
  return csv ? read_azure(text, path) : read_mooncake(text, path);
}

}  // namespace kv
