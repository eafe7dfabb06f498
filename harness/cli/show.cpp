// `kverify show`: what a case says, in words, and what checking it is worth.
#include "harness/case/show.h"

#include <fmt/format.h>

#include "harness/case/json.h"
#include "harness/certify/corpus.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/judge/reach_coverage.h"

namespace kv::cli {
namespace {

Result<ExitCode> reach(const Case& c, const ShowOptions& options, const Output& output) {
  KV_ASSIGN_OR_RETURN(const ReachedCase reached, reach_coverage(c, {}));
  output.say(coverage_text(reached.coverage));
  const FaultCount keys = keys_covered(reached.coverage);
  output.say(fmt::format("{} of {} losses of a key are certified, after {} candidates: {}\n",
                         keys.certified, keys.possible, reached.looked_at,
                         reached.coverage.complete() ? "complete" : "NOT complete"));
  KV_RETURN_IF_ERROR(save_case(options.reach_path, reached.c));
  return reached.coverage.complete() ? ExitCode::kPass : ExitCode::kVacuous;
}

}  // namespace

Result<ExitCode> show(const ShowOptions& options) {
  KV_ASSIGN_OR_RETURN(const Case c, load_checked_case(options.case_path));
  const Output output(std::nullopt);
  if (!options.reach_path.empty()) return reach(c, options, output);
  if (!options.coverage) {
    output.say(show_case(c));
    return ExitCode::kPass;
  }
  // Nothing is declared: what holds for this holds for any kernel.
  KV_ASSIGN_OR_RETURN(const CaseCoverage coverage, case_coverage(c, {}));
  output.say(coverage_text(coverage));
  return ExitCode::kPass;
}

}  // namespace kv::cli
