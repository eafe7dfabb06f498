// `kverify bisect`: which commit of a repository made a case fail.
#include <fmt/format.h>

#include <filesystem>

#include "harness/bisect/command.h"
#include "harness/bisect/git_history.h"
#include "harness/bisect/kept_steps.h"
#include "harness/case/json.h"
#include "harness/case/text_file.h"
#include "harness/certify/corpus.h"
#include "harness/certify/examine.h"
#include "harness/certify/interrupt.h"
#include "harness/certify/run_folder.h"
#include "harness/cli/commands.h"
#include "harness/cli/findings.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"
#include "harness/core/file_hash.h"
#include "harness/core/hash.h"
#include "harness/judge/fingerprint.h"
#include "harness/report/words.h"

namespace kv::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSuppressionsBytesMax = 16u << 20;

/// What one commit showed. The text is kept in files, and is the same for the same commit.
struct Trial {
  enum class Kind { kPasses, kFails, kSkipped } kind = Kind::kSkipped;
  std::string fault;  // of a failure: its fingerprint, without what a commit may rename
  std::string text;

  std::string kept() const {
    const char* word = kind == Kind::kPasses ? "pass" : kind == Kind::kFails ? "fail" : "skip";
    return std::string(word) + "\t" + fault + "\t" + text;
  }
  static std::optional<Trial> read(const std::string& kept) {
    const size_t first = kept.find('\t');
    const size_t second = first == kept.npos ? kept.npos : kept.find('\t', first + 1);
    if (second == kept.npos) return std::nullopt;
    const std::string word = kept.substr(0, first);
    const Kind kind = word == "pass"   ? Kind::kPasses
                      : word == "fail" ? Kind::kFails
                                       : Kind::kSkipped;
    return Trial{kind, kept.substr(first + 1, second - first - 1), kept.substr(second + 1)};
  }
};

class Bisection {
 public:
  Bisection(const BisectOptions& options, Case c, std::vector<Case> preceding, GitHistory history,
            KeptSteps kept)
      : options_(options),
        output_(options.json_path),
        case_(std::move(c)),
        preceding_(std::move(preceding)),
        history_(std::move(history)),
        kept_(std::move(kept)) {}

  Result<ExitCode> run() {
    KV_ASSIGN_OR_RETURN(const Commit good, history_.find(options_.good));
    KV_ASSIGN_OR_RETURN(const Commit bad, history_.find(options_.bad));
    KV_RETURN_IF_ERROR(try_ends(good, bad));
    KV_RETURN_IF_ERROR(history_.start(good, bad));
    while (history_.current()) {
      if (steps_.size() >= options_.commits_max) return stop(ExitCode::kTimeLimit);
      KV_ASSIGN_OR_RETURN(const Trial trial, try_commit(*history_.current()));
      KV_RETURN_IF_ERROR(history_.mark(mark_of(trial)));
    }
    return stop(history_.found().size() == 1 ? ExitCode::kPass : ExitCode::kVacuous);
  }

 private:
  Result<void> try_ends(const Commit& good, const Commit& bad) {
    KV_RETURN_IF_ERROR(history_.check_out(bad));
    KV_ASSIGN_OR_RETURN(const Trial failing, try_commit(bad));
    if (failing.kind != Trial::Kind::kFails)
      return bad_input(fmt::format("{}: expected a commit in which the case fails, got: {}",
                                   options_.bad, failing.text));
    fault_ = failing.fault;
    KV_RETURN_IF_ERROR(history_.check_out(good));
    KV_ASSIGN_OR_RETURN(const Trial passing, try_commit(good));
    if (passing.kind == Trial::Kind::kPasses) return {};
    return bad_input(fmt::format("{}: expected a commit in which the case passes, got: {}",
                                 options_.good, passing.text));
  }

  /// Another fault than the one that is looked for says nothing of that one.
  Mark mark_of(const Trial& trial) const {
    if (trial.kind == Trial::Kind::kPasses) return Mark::kGood;
    return trial.kind == Trial::Kind::kFails && trial.fault == fault_ ? Mark::kBad : Mark::kSkip;
  }

  Result<Trial> try_commit(const Commit& commit) {
    if (const auto known = kept_.result_of(commit.id))
      if (const auto kept = Trial::read(*known)) return told(commit, *kept, " (as kept)");
    KV_ASSIGN_OR_RETURN(const Trial trial, build_and_run());
    KV_RETURN_IF_ERROR(kept_.add(commit.id, trial.kept()));
    return told(commit, trial, "");
  }

  Trial told(const Commit& commit, const Trial& trial, const char* how) {
    steps_.push_back({commit, trial});
    output_.say(fmt::format("{}  {}{}: {}\n", commit.short_id(), commit.subject, how, trial.text));
    return trial;
  }

  Result<Trial> build_and_run() {
    const std::string plugin = (fs::path(history_.tree()) / options_.plugin).string();
    std::error_code missing;
    fs::remove(plugin, missing);  // of the commit before it
    const CommandEnd built = run_command({.words = {"sh", "-c", options_.build},
                                          .folder = history_.tree(),
                                          .seconds = options_.build_seconds,
                                          .interrupted = &interrupted()});
    if (built.interrupted) return Error{ErrorKind::kTimeLimit, "interrupted"};
    if (!built.ok()) return skipped(built);
    if (!fs::is_regular_file(plugin, missing)) return Trial{.text = "builds no " + options_.plugin};
    BenchOptions bench = options_.bench;
    bench.plugin_path = plugin;
    KV_ASSIGN_OR_RETURN(const JudgeOptions judging, judging_on(bench, {}));
    const auto examined = examine_once(bench, judging, case_, preceding_);
    if (!examined.ok()) {
      if (interrupted()) return examined.error();
      return Trial{.text = "cannot be run: " + one_line(examined.error().message)};
    }
    return judged(examined->verdict);
  }

  static Trial skipped(const CommandEnd& built) {
    return {.text = fmt::format("does not build ({}): {}",
                                built.timed_out ? "too slow" : fmt::format("exit {}", built.status),
                                built.last_line())};
  }

  Trial judged(const Verdict& verdict) const {
    if (verdict.outcome == Outcome::kPass) return {.kind = Trial::Kind::kPasses, .text = "passes"};
    if (!is_finding(verdict))
      return {.text =
                  one_line(fmt::format("{}: {}", outcome_name(verdict.outcome), verdict.message))};
    const Fingerprint f = fingerprint_of(case_, verdict);
    return {.kind = Trial::Kind::kFails,
            .fault = f.property + " " + f.failure_class + " " + f.operation,
            .text = "fails: " + f.text()};
  }

  static std::string one_line(std::string text) {
    CommandEnd end;
    std::replace(text.begin(), text.end(), '\n', ' ');
    end.output = std::move(text);
    return end.last_line();
  }

  Result<ExitCode> stop(ExitCode code) {
    const std::vector<Commit>& found = history_.found();
    std::string text;
    if (found.size() == 1) {
      text = fmt::format("\nfirst bad commit: {} {}\n", found[0].id, found[0].subject);
    } else if (found.empty()) {
      text = fmt::format("\nnot found within {} commits\n", options_.commits_max);
    } else {
      text = "\nthe first bad commit is one of these; the others could not be tried:\n";
      for (const Commit& commit : found)
        text += fmt::format("  {} {}\n", commit.id, commit.subject);
    }
    output_.say(text);
    nlohmann::ordered_json json = {{"kverify", kVersion}, {"command", "bisect"}, {"fault", fault_}};
    json["first_bad"] = nlohmann::ordered_json::array();
    for (const Commit& commit : found)
      json["first_bad"].push_back({{"commit", commit.id}, {"subject", commit.subject}});
    json["steps"] = nlohmann::ordered_json::array();
    for (const auto& [commit, trial] : steps_)
      json["steps"].push_back(
          {{"commit", commit.id}, {"subject", commit.subject}, {"result", trial.text}});
    json["exit_code"] = static_cast<int>(code);
    KV_RETURN_IF_ERROR(output_.finish(json));
    return code;
  }

  const BisectOptions& options_;
  const Output output_;
  const Case case_;
  const std::vector<Case> preceding_;
  GitHistory history_;
  KeptSteps kept_;
  std::string fault_;
  std::vector<std::pair<Commit, Trial>> steps_;
};

/// What else decides a trial: results under another case, build, device, choice of checks, limit or
/// kverify are none of this search.
Result<std::string> search_of(const BisectOptions& options, const Case& c) {
  KV_ASSIGN_OR_RETURN(const std::string kverify, hash_of_file("/proc/self/exe"));
  const BenchOptions& bench = options.bench;
  std::string accepted;
  if (!bench.suppressions_path.empty()) {
    KV_ASSIGN_OR_RETURN(accepted, read_text_file(bench.suppressions_path, kSuppressionsBytesMax));
  }
  Hasher hash;
  for (const std::string& part :
       {case_to_json(c), options.build, options.plugin, std::string(device_name(bench.device)),
        bench.checks, accepted, fmt::format("{} {}", bench.call_seconds, bench.memory_mib),
        kverify}) {
    hash.add(static_cast<uint64_t>(part.size()));
    hash.add_text(part);
  }
  return hex64(hash.digest());
}

}  // namespace

Result<ExitCode> bisect(const BisectOptions& options) {
  // That file is removed before each build.
  const fs::path plugin = fs::path(options.plugin).lexically_normal();
  if (plugin.is_absolute() || plugin.begin()->string() == ".." || plugin == "." ||
      !plugin.has_filename())
    return bad_input("--plugin: expected a file within the repository's tree, got " +
                     options.plugin);
  KV_ASSIGN_OR_RETURN(Case c, load_checked_case(options.case_path));
  KV_ASSIGN_OR_RETURN(std::vector<Case> preceding, load_preceding(options.case_path, c));
  KV_ASSIGN_OR_RETURN(const std::string search, search_of(options, c));
  KV_ASSIGN_OR_RETURN(KeptSteps kept, KeptSteps::open(options.keep, search));
  KV_ASSIGN_OR_RETURN(const RunFolder folder, RunFolder::create());
  KV_ASSIGN_OR_RETURN(GitHistory history, GitHistory::open({.repository = options.repository,
                                                            .tree = folder.path() + "/tree",
                                                            .interrupted = &interrupted()}));
  return Bisection(options, std::move(c), std::move(preceding), std::move(history), std::move(kept))
      .run();
}

}  // namespace kv::cli
