#include "harness/cli/findings.h"

#include <filesystem>

#include "harness/case/text_file.h"
#include "harness/certify/corpus.h"
#include "harness/cli/minimized.h"
#include "harness/explain/explain.h"
#include "harness/judge/fingerprint.h"
#include "harness/report/record.h"

namespace kv::cli {
namespace {

constexpr uint64_t kExplainedSlots = 4096;  // longest request whose fault is looked for

std::string quoted(const std::string& path) {
  const bool plain = path.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789_./+-") == std::string::npos;
  return plain ? path : "'" + path + "'";
}

}  // namespace

std::string replay_command(const std::string& case_path, const BenchOptions& bench) {
  std::string command = "kverify replay " + quoted(case_path);
  if (bench.device != DeviceKind::kCpu) command += " --device cuda";
  if (!bench.plugin_path.empty()) command += " --plugin " + quoted(bench.plugin_path);
  return command;
}

Result<void> FindingSink::add(Examined examined, const std::string& case_path) {
  ++total_;
  std::string path = case_path;
  // A case of somebody's that fails after others only says nothing by itself.
  const bool is_whole = !path.empty() && examined.preceding.empty();
  if (!is_whole && !folder_.empty()) {
    Result<std::string> stored = store_finding(folder_, examined);
    if (!stored.ok()) {  // what was proved is told all the same
      output_.say("\n" + record_text({.c = examined.c, .verdict = examined.verdict}) + "\n");
      return stored.error();
    }
    path = std::move(*stored);
  }
  const std::string fingerprint = fingerprint_of(examined.c, examined.verdict).text();
  const bool is_known = baseline_ != nullptr && file(name(examined));
  if (!told_.insert({fingerprint, is_known}).second) return {};
  const Result<std::string> minimized = offer_minimized(examined, path);
  Result<void> traced;
  if (!examined.trace.empty() && !path.empty())
    traced = write_text_file(trace_path(path), examined.trace);
  const Record record{.c = std::move(examined.c),
                      .verdict = std::move(examined.verdict),
                      .history = !examined.preceding.empty(),
                      .case_path = path,
                      .replay = path.empty() ? "" : replay_command(path, bench_),
                      .minimized = minimized.ok() ? *minimized : "",
                      .output = std::move(examined.output),
                      .story = std::move(examined.story),
                      .details = std::move(examined.details)};
  output_.say("\n" + record_text(record) + "\n");
  json_.push_back(record_json(record));
  records_.push_back(record);
  if (!is_known) news_.push_back(record);
  if (!minimized.ok()) output_.say("  not minimized: " + minimized.error().message + "\n");
  return traced;
}

Fault FindingSink::name(const Examined& examined) const {
  const Verdict& v = examined.verdict;
  Fault fault{.fingerprint = fingerprint_of(examined.c, v).text(), .features = {}, .names = {}};
  if (examined.c.engine) return fault;
  fault.features = telling_features(examined.c);
  const bool may_be_explained = v.outcome == Outcome::kFail && v.divergence &&
                                examined.preceding.empty() &&
                                v.divergence->kv_length <= kExplainedSlots;
  if (!may_be_explained) return fault;
  const auto observe = [&](const Case& one) { return observe_once(bench_, one); };
  const auto explained = kv::explain(examined.c, observe, {.cases_max = 0});
  if (!explained.ok()) return fault;  // what no reading holds has no name
  for (const Named& named : explained->remain) fault.names.insert(hypothesis_family(named.name));
  return fault;
}

bool FindingSink::file(const Fault& fault) {
  faults_.add(fault);
  const bool is_known = baseline_->knows(fault);
  if (!is_known) new_faults_.add(fault);
  return is_known;
}

// Not of what needs others before it or takes its time to fail: `kverify minimize` is for those.
Result<std::string> FindingSink::offer_minimized(const Examined& examined,
                                                 const std::string& path) const {
  const Verdict& v = examined.verdict;
  const bool quick = v.outcome == Outcome::kFail && examined.preceding.empty() &&
                     v.failure_class != "hang" && v.failure_class != "memory";
  if (!quick || minimizing_.attempts_max == 0 || folder_.empty()) return std::string();
  const std::filesystem::path folder = std::filesystem::path(folder_) / "minimized";
  KV_RETURN_IF_ERROR(make_folder(folder.string()));
  const std::string out = (folder / std::filesystem::path(path).filename()).string();
  KV_ASSIGN_OR_RETURN(Reproducer reproducer, Reproducer::start(bench_, path, examined.c));
  const auto m =
      minimize_to(out, examined.c, fingerprint_of(examined.c, v), reproducer, minimizing_);
  if (!m.ok()) return m.error();
  return out;
}

}  // namespace kv::cli
