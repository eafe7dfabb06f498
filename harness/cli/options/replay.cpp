// kverify replay
#include "harness/cli/options/offers.h"

namespace kv::cli {

void offer_replay(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<ReplayOptions>(
      {app, "replay", "run and judge one case"}, chosen,
      [](const ReplayOptions& o) -> Result<ExitCode> {
        KV_RETURN_IF_ERROR(keep_apart(o.case_path, o.json_path.value_or("")));
        return replay(o);
      });
  command->add_option("case", o->case_path, "case file")->required();
  add_bench(*command, o->bench);
  add_json(*command, o->json_path);
}

}  // namespace kv::cli
