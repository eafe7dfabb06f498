// kverify mutate, and the internal mutate-shard
#include "harness/cli/options/offers.h"

namespace kv::cli {

namespace {

void add_mutate_options(CLI::App& command, MutateOptions& o) {
  command.add_option("--kernel", o.kernel, "part of the names of the kernels that are changed")
      ->capture_default_str();
  command.add_option("--mutations", o.mutations, "tried, spread evenly; 0: all")
      ->check(whole(0, 1u << 30))
      ->capture_default_str();
  command.add_option("--cases", o.cases, "of the suite")->check(whole(1, 1u << 20));
  command.add_option("--reach-cases", o.reach_cases, "that each mutant has to be reached by")
      ->check(whole(1, 1u << 20));
  command.add_option("--seed", o.seed, "of the suite")->capture_default_str();
  command.add_option("--seconds", o.seconds, "most for each mutant")->check(number(0.1, 1e5));
  command.add_option("--again", o.again, "JSON of an earlier run: only what survived it infected")
      ->check(CLI::ExistingFile);
  command.add_option("--plugin", o.bench.plugin_path, "library whose kernels are changed");
}

}  // namespace

void offer_mutate(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<MutateOptions>(
      {app, "mutate", "change the PTX, one instruction at a time: is it noticed?"}, chosen, mutate);
  add_mutate_options(*command, *o);
  command->add_option("--jobs", o->jobs, "processes")->check(whole(1, 1024));
  command->add_option("--score-min", o->score_min, "fail below this")->check(number(0, 1));
  command->add_option("--judgements", o->judgements, "file of equivalent mutants, and why");
  command->add_option("--dir", o->folder, "keep results in this folder, and continue from it")
      ->check(named());
  add_json(*command, o->json_path);
}

void offer_mutate_shard(CLI::App& app, Chosen& chosen) {
  auto [shard, o] = subcommand<MutateOptions>({app, "mutate-shard", "internal: a part of mutate"},
                                              chosen, mutate_shard);
  shard->group("");
  add_mutate_options(*shard, *o);
  shard->add_option("--shard", o->shard);
  shard->add_option("--shards", o->shards)->check(whole(1, 1024));
  shard->add_option("--dir", o->folder)->required();
}

}  // namespace kv::cli
