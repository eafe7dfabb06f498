// `kverify replay`: one case, after those that it names as preceding, told in full.
#include <fmt/format.h>

#include "harness/certify/corpus.h"
#include "harness/certify/examine.h"
#include "harness/certify/histories.h"
#include "harness/certify/reproduce.h"
#include "harness/cli/commands.h"
#include "harness/cli/findings.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"
#include "harness/report/summary.h"
#include "harness/report/words.h"

namespace kv::cli {

Result<ExitCode> replay(const ReplayOptions& options) {
  const Output output(options.json_path);
  KV_ASSIGN_OR_RETURN(const Case c, load_checked_case(options.case_path));
  KV_ASSIGN_OR_RETURN(Examined examined, examine_again(options.bench, options.case_path, c));
  RunSummary summary;
  summary.histories = c.engine.has_value();
  summary.add(c, examined.verdict);
  const std::optional<HistoryStats> history = examined.history;
  const Verdict verdict = examined.verdict;
  FindingSink findings("", options.bench, output);
  if (is_finding(verdict))
    KV_RETURN_IF_ERROR(findings.add(std::move(examined), options.case_path));
  else
    output.say(fmt::format("{}: {}{}\n", options.case_path, outcome_name(verdict.outcome),
                           verdict.message.empty() ? "" : ": " + verdict.message));
  output.say(summary_text(summary));
  if (history) output.say(history_text(*history));

  nlohmann::ordered_json json;
  json["kverify"] = kVersion;
  json["command"] = "replay";
  json["device"] = device_name(options.bench.device);
  json["outcome"] = outcome_name(verdict.outcome);
  json["message"] = verdict.message;
  json["summary"] = summary_json(summary);
  if (history) json["stats"] = history_json(*history);
  json["failures"] = findings.json();
  json["exit_code"] = static_cast<int>(summary.exit_code());
  KV_RETURN_IF_ERROR(output.finish(json));
  return summary.exit_code();
}

}  // namespace kv::cli
