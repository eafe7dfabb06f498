// kverify show
#include "harness/cli/options/offers.h"

namespace kv::cli {

void offer_show(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<ShowOptions>(
      {app, "show", "say what a case does"}, chosen, [](const ShowOptions& o) -> Result<ExitCode> {
        KV_RETURN_IF_ERROR(keep_apart(o.case_path, o.reach_path));
        return show(o);
      });
  command->add_option("case", o->case_path, "case file")->required();
  command
      ->add_option("--reach", o->reach_path,
                   "write the case with rows and data that would expose the loss of any key")
      ->check(named());
  command->add_flag(
      "--coverage", o->coverage,
      "which lost, doubled or exchanged keys, V rows, pages and heads it would expose");
}

}  // namespace kv::cli
