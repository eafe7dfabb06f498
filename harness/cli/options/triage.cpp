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
  command
      ->add_option("--sql", o->sql,
                   "run nothing; answer this SELECT from the ledger of the campaign in the folder")
      ->check(named());
  command->footer(R"(
Tables for --sql, in memory and read only:
  runs      every run: line, number, outcome, variant, fingerprint, history, file, new_feature_pairs
  cases     the last run of each number
  findings  those of cases with a fingerprint
  faults    for each fingerprint: count, first (number), file (of the first)
  deaths    workers that died: line, worker, number, status, set_aside
Example: kverify triage D --sql "SELECT variant, count(*) FROM findings GROUP BY variant")");
  add_bench(*command, o->bench);
  add_json(*command, o->json_path);
}

}  // namespace kv::cli
