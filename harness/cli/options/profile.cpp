// kverify profile
#include "harness/cli/options/offers.h"

namespace kv::cli {

void offer_profile(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<ProfileOptions>(
      {app, "profile", "count what a case's launches do"}, chosen,
      [](const ProfileOptions& o) -> Result<ExitCode> {
        KV_RETURN_IF_ERROR(keep_apart(o.case_path, o.json_path.value_or("")));
        KV_RETURN_IF_ERROR(keep_apart(o.case_path, o.lcov_path));
        return profile(o);
      });
  command->add_option("case", o->case_path, "case file")->required();
  command
      ->add_option("--lcov", o->lcov_path,
                   "write which source lines of the kernels ran, as an lcov tracefile")
      ->check(named());
  add_bench(*command, o->bench);
  add_json(*command, o->json_path);
}

}  // namespace kv::cli
