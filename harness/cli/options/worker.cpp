// kverify worker, the internal process that runs foreign code
#include "harness/certify/histories.h"
#include "harness/cli/options/offers.h"
#include "harness/run/worker_loop.h"

namespace kv::cli {

void offer_worker(CLI::App& app, Chosen& chosen) {
  auto [command, o] =
      subcommand<WorkerOptions>({app, "worker", "internal: the process that runs foreign code"},
                                chosen, [](WorkerOptions options) -> Result<ExitCode> {
                                  options.engine_server = serve_engine;
                                  return static_cast<ExitCode>(run_worker(options));
                                });
  command->group("");
  // Its parent decides when it ends.
  end_at_once(*command, chosen);
  add_device(*command, o->device)->required();
  command->add_option("--plugin", o->plugin_path)->required();
  command->add_option("--profile", o->profile_path);
  command->add_option("--lcov", o->lcov_path);
  command->add_option("--checks", o->checks);
}

}  // namespace kv::cli
