// `kverify show`: what a case says, in words, and what checking it is worth.
#include "harness/case/show.h"

#include "harness/cli/commands.h"
#include "harness/cli/corpus.h"
#include "harness/cli/output.h"
#include "harness/judge/case_coverage.h"

namespace kv::cli {

Result<ExitCode> show(const ShowOptions& options) {
  KV_ASSIGN_OR_RETURN(const Case c, load_checked_case(options.case_path));
  const Output output(std::nullopt);
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
