// kverify triage
#include "harness/cli/options/offers.h"

namespace kv::cli {

void offer_triage(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<TriageOptions>(
      {app, "triage", "group findings; one line for each fault"}, chosen, triage);
  command->add_option("folder", o->folder, "folder of cases, or of a campaign")->required();
  command->add_option("--runs", o->runs, "runs of each finding, for its rate")
      ->check(whole(1, 100))
      ->capture_default_str();
  add_bench(*command, o->bench);
  add_json(*command, o->json_path);
}

}  // namespace kv::cli
