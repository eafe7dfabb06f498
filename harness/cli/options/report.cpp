// kverify report
#include "harness/cli/options/offers.h"

namespace kv::cli {

void offer_report(CLI::App& app, Chosen& chosen) {
  auto [command, o] =
      subcommand<ReportOptions>({app, "report", "replay cases and draw what fails, as HTML"},
                                chosen, [](const ReportOptions& o) -> Result<ExitCode> {
                                  KV_RETURN_IF_ERROR(keep_apart(o.path, o.out));
                                  return report(o);
                                });
  command->add_option("path", o->path, "case file, or folder of cases")->required();
  command->add_option("-o,--out", o->out, "HTML file to write")
      ->check(named())
      ->capture_default_str();
  add_bench(*command, o->bench);
}

}  // namespace kv::cli
