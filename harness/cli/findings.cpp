#include "harness/cli/findings.h"

#include "harness/cli/corpus.h"
#include "harness/report/record.h"

namespace kv::cli {
namespace {

std::string fault(const Verdict& verdict) {
  std::string key = verdict.failure_class + "\n" + verdict.variant;
  if (!verdict.findings.empty()) {
    const DeviceFinding& first = verdict.findings.front();
    key += "\n" + first.kernel + "\n" + std::to_string(first.ptx_line);
  }
  return key;
}

std::string quoted(const std::string& path) {
  const bool plain = path.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789_./+-") == std::string::npos;
  return plain ? path : "'" + path + "'";
}

}  // namespace

bool is_finding(const Verdict& verdict) {
  return verdict.outcome == Outcome::kFail || verdict.outcome == Outcome::kNondeterministic;
}

std::string replay_command(const std::string& case_path, const BenchOptions& bench) {
  std::string command = "kverify replay " + quoted(case_path);
  if (bench.device != DeviceKind::kCpu) command += " --device cuda";
  if (!bench.plugin_path.empty()) command += " --plugin " + quoted(bench.plugin_path);
  return command;
}

Result<void> FindingSink::add(Examined examined, const std::string& case_path) {
  ++total_;
  std::string path = case_path;
  if (path.empty() && !folder_.empty()) {
    KV_ASSIGN_OR_RETURN(path, store_finding(folder_, examined));
  }
  if (!known_.insert(fault(examined.verdict)).second) return {};
  const Record record{.c = std::move(examined.c),
                      .verdict = std::move(examined.verdict),
                      .history = !examined.preceding.empty(),
                      .case_path = path,
                      .replay = path.empty() ? "" : replay_command(path, bench_),
                      .output = std::move(examined.output)};
  output_.say("\n" + record_text(record) + "\n");
  json_.push_back(record_json(record));
  return {};
}

}  // namespace kv::cli
