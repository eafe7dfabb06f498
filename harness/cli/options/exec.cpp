// kverify exec
#include "harness/cli/options/offers.h"

namespace kv::cli {

void offer_exec(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<ExecOptions>(
      {app, "exec", "run a CUDA program under all checks: kverify exec -- ./a.out 7"}, chosen,
      [&app, &chosen](const ExecOptions& parsed) -> Result<ExitCode> {
        ExecOptions options = parsed;
        options.command = app.get_subcommand("exec")->remaining();
        options.command.insert(options.command.end(), chosen.program.begin(), chosen.program.end());
        if (options.command.empty())
          return bad_input("exec: expected a program, as in: kverify exec -- ./a.out 7");
        return exec(options);
      });
  command->prefix_command();  // from the first word that is no option on, all are the program's
  command->add_option("--checks", o->checks, "memory, undefined, race, barrier, async, leak")
      ->check(checks())
      ->capture_default_str();
  command->add_option("--seed", o->seed, "of the schedule of blocks, warps and streams")
      ->check(whole(0, UINT64_MAX))
      ->capture_default_str();
  command->add_option("--sm", o->model_sm, "simulated architecture")
      ->check(CLI::IsMember({80, 89, 90}))
      ->capture_default_str();
  command->add_option("--suppress", o->suppressions_path, "file of 'kind file:line reason'")
      ->check(named());
  command
      ->add_option("--time-limit", o->time_limit_s,
                   "seconds after which a kernel that still runs is stopped; 0: none")
      ->check(whole(0, 1'000'000))
      ->capture_default_str();
  command->add_option("--profile", o->profile_path, "write counters as JSON")->check(named());
  command->add_option("--lcov", o->lcov_path, "write the lines that ran, for lcov")->check(named());
  add_json(*command, o->json_path);
}

}  // namespace kv::cli
