// kverify minimize
#include "harness/cli/options/offers.h"

namespace kv::cli {

void offer_minimize(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<MinimizeOptions>(
      {app, "minimize", "make a failing case small; it goes on failing the same way"}, chosen,
      [](const MinimizeOptions& o) -> Result<ExitCode> {
        KV_RETURN_IF_ERROR(keep_apart(o.case_path, o.json_path.value_or("")));
        KV_RETURN_IF_ERROR(keep_apart(o.case_path, o.out));
        return minimize(o);
      });
  command->add_option("case", o->case_path, "case file")->required();
  command->add_option("--out", o->out, "case file to write (default: CASE.min.json)")
      ->check(named());
  command->add_option("--seconds", o->seconds, "stop after this time")
      ->check(number(0, 1e6))
      ->capture_default_str();
  command->add_option("--attempts", o->attempts, "stop after this many candidates")
      ->check(whole(0, 1'000'000'000))
      ->capture_default_str();
  add_bench(*command, o->bench);
  add_json(*command, o->json_path);
}

}  // namespace kv::cli
