// `kverify report`: a case, or all cases of a folder, replayed and drawn as one HTML page.
#include <fmt/format.h>

#include <filesystem>

#include "harness/case/text_file.h"
#include "harness/certify/corpus.h"
#include "harness/certify/interrupt.h"
#include "harness/certify/reproduce.h"
#include "harness/cli/commands.h"
#include "harness/cli/findings.h"
#include "harness/cli/html_findings.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"
#include "harness/report/summary.h"

namespace kv::cli {

Result<ExitCode> report(const ReportOptions& options) {
  const Output output(std::nullopt);
  std::error_code missing;
  std::vector<std::string> paths = {options.path};
  if (std::filesystem::is_directory(options.path, missing)) {
    KV_ASSIGN_OR_RETURN(paths, stored_findings(options.path));
  }
  RunSummary summary;
  FindingSink findings("", options.bench, output);
  for (const std::string& path : paths) {
    if (interrupted()) return static_cast<ExitCode>(kInterruptedStatus);
    KV_ASSIGN_OR_RETURN(const Case c, load_checked_case(path));
    KV_ASSIGN_OR_RETURN(Examined examined, examine_again(options.bench, path, c));
    summary.histories |= c.engine.has_value();
    summary.add(c, examined.verdict);
    if (is_finding(examined.verdict)) KV_RETURN_IF_ERROR(findings.add(std::move(examined), path));
  }
  KV_ASSIGN_OR_RETURN(const auto shown, html_findings(options.bench, findings.records()));
  const HtmlHead head{.title = options.path,
                      .version = kVersion,
                      .plugin = fmt::format("device {}", device_name(options.bench.device)),
                      .summary = paths.empty() ? "no findings\n" : summary_text(summary)};
  KV_RETURN_IF_ERROR(write_text_file(options.out, html_report(head, shown)));
  output.say(fmt::format("report      {}{}\n", options.out, paths.empty() ? ": no findings" : ""));
  return paths.empty() ? ExitCode::kPass : summary.exit_code();
}

}  // namespace kv::cli
