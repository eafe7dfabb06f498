// kverify exec
#include "harness/cli/options/offers.h"

namespace kv::cli {

void offer_exec(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<ExecOptions>(
      {app, "exec", "run a CUDA program under all checks: kverify exec -- ./a.out 7"}, chosen,
      exec);
  command->add_option("program", o->command, "after --, with its arguments")->required();
  command->add_option("--checks", o->checks, "memory, undefined, race, barrier, async, leak")
      ->check(named())
      ->capture_default_str();
  command->add_option("--seed", o->seed, "of the schedule of blocks, warps and streams")
      ->check(whole(0, UINT64_MAX))
      ->capture_default_str();
  command->add_option("--sm", o->model_sm, "simulated architecture")
      ->check(CLI::IsMember({80, 89, 90}))
      ->capture_default_str();
  command->add_option("--suppress", o->suppressions_path, "file of 'kind file:line reason'")
      ->check(named());
  command->add_option("--profile", o->profile_path, "write counters as JSON")->check(named());
  command->add_option("--lcov", o->lcov_path, "write the lines that ran, for lcov")->check(named());
  add_json(*command, o->json_path);
}

}  // namespace kv::cli
