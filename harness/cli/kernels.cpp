// `kverify kernels`: which kernel variant a plugin plans for what, and what it offers at all.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/certify/examine.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"

namespace kv::cli {

Result<ExitCode> kernels(const BenchOptions& bench) {
  const Output output(std::nullopt);
  KV_ASSIGN_OR_RETURN(const Examiner examiner, Examiner::start(bench));
  const Hello& hello = examiner.hello();
  output.say(fmt::format("{} {}\n", hello.plugin.name, hello.plugin.version));
  if (!hello.kernel_level) {
    output.say("  the plugin does not offer the kernel level\n");
    return ExitCode::kUnsupported;
  }
  output.say(fmt::format("  {:<6}{:<6}{:<18}{:<18}{}\n", "dtype", "cache", "batch", "runs",
                         "may be forced"));
  for (const Dispatch& row : hello.dispatch) {
    output.say(fmt::format("  {:<6}{:<6}{:<18}{:<18}{}\n", dtype_name(row.type),
                           dtype_name(row.cache), row.batch, row.chosen.empty() ? "-" : row.chosen,
                           fmt::join(row.forceable, ", ")));
  }
  for (const bool offered : {true, false}) {
    output.say(offered ? "offered\n" : "not offered\n");
    for (size_t i = 0; i < kFeatureCount; ++i) {
      const bool is_told = may_be_refused(Feature(i)) && hello.offered.has(Feature(i)) == offered;
      if (is_told) output.say(fmt::format("  {}\n", row_of(Feature(i)).offer));
    }
  }
  return ExitCode::kPass;
}

}  // namespace kv::cli
