// kverify explain
#include "harness/cli/options/offers.h"

namespace kv::cli {

void offer_explain(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<ExplainOptions>(
      {app, "explain", "name the fault behind a failing case"}, chosen,
      [](const ExplainOptions& o) -> Result<ExitCode> {
        KV_RETURN_IF_ERROR(keep_apart(o.case_path, o.json_path.value_or("")));
        return explain(o);
      });
  command->add_option("case", o->case_path, "case file")->required();
  command->add_option("--cases", o->cases, "further cases that may be run to decide")
      ->check(whole(0, 1000))
      ->capture_default_str();
  add_bench(*command, o->bench);
  add_json(*command, o->json_path);
}

}  // namespace kv::cli
