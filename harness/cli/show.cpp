// `kverify show`: what a case says, in words.
#include "harness/case/show.h"

#include "harness/cli/commands.h"
#include "harness/cli/corpus.h"
#include "harness/cli/output.h"

namespace kv::cli {

Result<ExitCode> show(const std::string& case_path) {
  KV_ASSIGN_OR_RETURN(const Case c, load_checked_case(case_path));
  Output(std::nullopt).say(show_case(c));
  return ExitCode::kPass;
}

}  // namespace kv::cli
