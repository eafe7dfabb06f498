// kverify kernels
#include "harness/cli/options/offers.h"

namespace kv::cli {

void offer_kernels(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<BenchOptions>(
      {app, "kernels", "say which kernel a plugin runs for what"}, chosen, kernels);
  add_bench(*command, *o);
}

}  // namespace kv::cli
