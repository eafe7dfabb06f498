// kverify mutants, and the internal mutants-attribute
#include "harness/cli/mutants_attribute.h"
#include "harness/cli/options/offers.h"

namespace kv::cli {

void offer_mutants(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<MutantsOptions>(
      {app, "mutants", "are the bugs of corpus/mutants found?"}, chosen, mutants);
  command->add_option("--patches", o->patches, "folder of the patches")->capture_default_str();
  command->add_option("--plugins", o->plugins, "folder of the built mutants (default: build them)");
  command->add_option("--corpus", o->corpus, "as of check")->capture_default_str();
  command->add_option("--only", o->only, "those whose name has this; may be repeated");
  command->add_option("--seed", o->seed, "the first seed")->capture_default_str();
  command->add_option("--seeds", o->seeds, "campaigns for each")->check(whole(1, 1000));
  command->add_option("--cases", o->cases, "most that a campaign draws")->check(whole(1, 1u << 30));
  command->add_option("--seconds", o->seconds, "most processor time for a campaign")
      ->check(number(1, 1e5));
  command->add_option("--results", o->results, "keep results in this file, and continue from it")
      ->check(named());
  command
      ->add_option("--table", o->table, "bring this table up to date (corpus/mutants/killed.json)")
      ->check(named());
  command
      ->add_option("--matrix", o->matrix,
                   "go on behind the first finding, and write what only each property kills")
      ->check(named());
  command->add_option("--jobs", o->jobs, "campaigns at once")->check(whole(1, 1024));
  add_json(*command, o->json_path);
}

void offer_mutants_attribute(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<AttributeOptions>(
      {app, "mutants-attribute", "internal: everything that objects to one planted bug"}, chosen,
      mutants_attribute);
  command->group("");
  command->add_option("--plugin", o->plugin)->required();
  command->add_option("--corpus", o->corpus);
  command->add_option("--seed", o->seed);
  command->add_option("--cases", o->cases);
  command->add_option("--json", o->json)->required();
}

}  // namespace kv::cli
