// kverify doctor
#include "harness/cli/options/offers.h"

namespace kv::cli {

void offer_doctor(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<BenchOptions>(
      {app, "doctor", "say what this machine has and what is missing"}, chosen, doctor);
  add_bench(*command, *o);
}

}  // namespace kv::cli
