// `kverify check`: replays the corpus, then draws cases until enough ran or too much failed.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <deque>
#include <limits>

#include "harness/case/text_file.h"
#include "harness/certify/corpus.h"
#include "harness/certify/examine.h"
#include "harness/certify/histories.h"
#include "harness/certify/interrupt.h"
#include "harness/cli/baseline.h"
#include "harness/cli/case_source.h"
#include "harness/cli/commands.h"
#include "harness/cli/findings.h"
#include "harness/cli/html_findings.h"
#include "harness/cli/output.h"
#include "harness/cli/processor_time.h"
#include "harness/cli/version.h"
#include "harness/core/json_fields.h"
#include "harness/gen/small_cases.h"
#include "harness/report/ci_output.h"
#include "harness/report/summary.h"

namespace kv::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kDrawnDefault = 200;
constexpr size_t kDistinctMax = 10;  // then a campaign stops, unless told to keep going
constexpr size_t kFindingsMax = 50;
constexpr std::chrono::seconds kMinimizeMax{20};  // for each distinct fault
constexpr int kCoverRounds = 2;    // for what verdicts that say nothing left uncovered
constexpr size_t kPendingMax = 2;  // one is judged while the other runs

struct Shard {
  uint64_t index = 0, count = 1;
};
/// "2/8" is { 1, 8 }.
Result<Shard> parse_shard(const std::string& text) {
  constexpr uint64_t kShardsMax = 10'000;
  const size_t slash = text.find('/');
  const auto number = [](std::string_view digits) {
    uint64_t value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return status == std::errc() && end == digits.data() + digits.size() ? value : 0;
  };
  const uint64_t index = number(std::string_view(text).substr(0, slash));
  const uint64_t count = slash == text.npos ? 0 : number(std::string_view(text).substr(slash + 1));
  if (index >= 1 && index <= count && count <= kShardsMax) return Shard{index - 1, count};
  return bad_input(fmt::format("--shard: expected i/n with i from 1 to n and n up to {}, got '{}'",
                               kShardsMax, text));
}

class Check {
 public:
  Check(const CheckOptions& options, Shard shard)
      : options_(options),
        shard_(shard),
        output_(options.json_path),
        findings_(options.out, options.bench, output_,
                  {.attempts_max = options.minimize_attempts, .time_max = kMinimizeMax}),
        source_(source_options(options, shard)),
        started_(Clock::now()) {}

  Result<ExitCode> run() {
    if (!options_.baseline_path.empty()) {
      KV_ASSIGN_OR_RETURN(known_, read_baseline(options_.baseline_path));
    }
    if (!options_.baseline_path.empty() || !options_.write_baseline_path.empty())
      findings_.hold_against(known_);
    JudgeOptions judging;
    if (engine_) judging.sample_rows = kCampaignValueSteps;
    KV_ASSIGN_OR_RETURN(Examiner examiner, Examiner::start(options_.bench, judging));
    summary_ = RunSummary(examiner.hello().offered);
    summary_.histories = engine_;
    say_hello(examiner.hello());
    source_.set_drawing(engine_ ? examiner.history_drawing() : examiner.drawing());
    const Result<void> outcome = examine_all(examiner);
    progress_.clear();
    const bool stopped_by_user = interrupted();
    if (!outcome.ok() && !stopped_by_user) return outcome.error();
    return finish(examiner.hello(), stopped_by_user);
  }

 private:
  static SourceOptions source_options(const CheckOptions& options, Shard shard) {
    SourceOptions source;
    if (!options.exhaustive) source.files = corpus_files(options.corpus);
    source.engine = options.level == "engine";
    source.seed = options.seed;
    source.exhaustive = options.exhaustive;
    source.shard = shard.index;
    source.shards = shard.count;
    const bool timed = options.minutes || options.processor_seconds;
    source.drawn_max = options.cases.value_or(
        timed || options.exhaustive ? std::numeric_limits<uint64_t>::max() : kDrawnDefault);
    const std::chrono::duration<double, std::ratio<60>> minutes(options.minutes.value_or(0));
    source.is_late = [&options, minutes, started = Clock::now()] {
      return (options.minutes && Clock::now() - started >= minutes) ||
             (options.processor_seconds && processor_seconds() >= *options.processor_seconds);
    };
    return source;
  }

  void say_small_cases() {
    const auto counts = count_small_cases();
    std::string parts;
    uint64_t all = 0;
    for (size_t i = 0; i < kSmallFamilies; ++i) {
      all += counts[i];
      parts += fmt::format("{}{} of {}", i == 0 ? "" : ", ", counts[i],
                           small_family_name(static_cast<SmallFamily>(i)));
    }
    due_ = (all + shard_.count - 1 - shard_.index) / shard_.count;
    if (options_.cases) due_ = std::min(due_, *options_.cases);
    output_.say(fmt::format("all small cases: {}: {}; share {} of {}, {} cases\n", all, parts,
                            shard_.index + 1, shard_.count, due_));
  }

  void say_hello(const Hello& hello) {
    if (!options_.bench.checks.empty())
      output_.say(fmt::format("checks of the device: {}; no others\n", options_.bench.checks));
    if (options_.exhaustive) return say_small_cases();
    if (engine_) {
      output_.say(fmt::format("kverify {}: {} {} on device {}; histories with seed {}\n", kVersion,
                              hello.plugin.name, hello.plugin.version,
                              device_name(options_.bench.device), options_.seed));
      return;
    }
    output_.say(fmt::format(
        "kverify {}: {} {} on device {}; {} cases of the corpus, then drawn ones "
        "with seed {}\n",
        kVersion, hello.plugin.name, hello.plugin.version, device_name(options_.bench.device),
        corpus_files(options_.corpus).size(), options_.seed));
    std::string missing;
    for (size_t i = 0; i < kFeatureCount; ++i)
      if (!hello.offered.has(Feature(i))) missing += fmt::format(", {}", row_of(Feature(i)).offer);
    if (!missing.empty()) output_.say("not offered, not drawn: " + missing.substr(2) + "\n");
  }

  Result<void> examine_all(Examiner& examiner) {
    std::deque<std::string> paths;  // of the pending cases
    bool more = true;
    int rounds = 0;
    while (!interrupted()) {
      while (more && paths.size() < kPendingMax) {
        KV_ASSIGN_OR_RETURN(auto sourced, source_.next());
        more = sourced.has_value();
        if (!more) break;
        const Keep keep = sourced->path.empty() ? Keep::kNo : Keep::kForItsRelation;
        KV_RETURN_IF_ERROR(examiner.submit(std::move(sourced->c), keep));
        paths.push_back(std::move(sourced->path));
      }
      if (paths.empty()) {
        more = rounds++ < kCoverRounds && source_.cover_again(summary_.met_or_refused()) > 0;
        if (more) continue;
        return {};
      }
      KV_ASSIGN_OR_RETURN(Examined examined, examiner.next());
      summary_.add(examined.c, examined.verdict);
      if (examined.history) histories_ += *examined.history;
      warp_instructions_ += examined.warp_instructions;
      runs_ += examined.runs;
      if (is_finding(examined.verdict)) {
        progress_.clear();
        KV_RETURN_IF_ERROR(findings_.add(std::move(examined), paths.front()));
      }
      paths.pop_front();
      show_progress();
      if (enough_failed()) return {};
    }
    return {};
  }

  bool enough_failed() {
    if (options_.first) return findings_.total() > 0;
    stopped_early_ = !options_.keep_going &&
                     (findings_.distinct() >= kDistinctMax || findings_.total() >= kFindingsMax);
    return stopped_early_;
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

  void show_progress() {
    const double rate = static_cast<double>(summary_.cases) / seconds();
    std::string line =
        fmt::format("{} cases, {:.1f}/s, {} findings", summary_.cases, rate, findings_.total());
    if (due_ > summary_.cases && rate > 0) {
      line +=
          fmt::format(", about {:.0f} s left", static_cast<double>(due_ - summary_.cases) / rate);
    }
    progress_.show(line);
  }

  Result<ExitCode> finish(const Hello& hello, bool stopped_by_user) {
    summary_.is_random = !options_.exhaustive;
    summary_.must_hit_is_due = source_.covered() && !stopped_early_ && !stopped_by_user;
    output_.say(summary_text(summary_) + (engine_ ? history_text(histories_) : ""));
    if (stopped_early_)
      output_.say(
          fmt::format("  stopped     after {} findings, {} distinct; --keep-going goes on\n",
                      findings_.total(), findings_.distinct()));
    if (stopped_by_user) output_.say("  stopped     interrupted\n");
    const double time = seconds(), busy = std::max(processor_seconds(), 1e-3);
    output_.say(fmt::format(
        "machine (never compared)\n  time        {:.1f} s, {:.1f} cases/s, {}"
        "{:.1f} million warp instructions/s\n"
        "  processor   {:.2f} s; {:.0f} cases and {:.0f} judged runs for each of them\n",
        time, static_cast<double>(summary_.cases) / time,
        engine_ ? operations_per_second(histories_, time) : "",
        static_cast<double>(warp_instructions_) / time / 1e6, busy,
        static_cast<double>(summary_.cases) / busy, static_cast<double>(runs_) / busy));
    const ExitCode code = exit_code();
    KV_RETURN_IF_ERROR(tell_ci(hello));
    KV_RETURN_IF_ERROR(output_.finish(json(hello, code)));
    return stopped_by_user ? static_cast<ExitCode>(kInterruptedStatus) : code;
  }

  /// As if the findings of known faults had passed, when there is no other.
  ExitCode exit_code() const {
    if (options_.baseline_path.empty()) return summary_.exit_code();
    std::string news;
    for (const std::string& fault : findings_.new_faults().lines()) news += "    " + fault + "\n";
    output_.say(fmt::format("  baseline    {} faults known, {}\n{}", known_.size(),
                            news.empty() ? "no other found" : "new:", news));
    if (!news.empty()) return summary_.exit_code();
    RunSummary without = summary_;
    for (const Outcome known : {Outcome::kFail, Outcome::kNondeterministic}) {
      without.outcomes[Outcome::kPass] += without.count(known);
      without.outcomes[known] = 0;
    }
    return without.exit_code();
  }

  Result<void> draw(std::span<const Record> news, const Hello& hello) const {
    KV_ASSIGN_OR_RETURN(const auto shown, html_findings(options_.bench, news));
    const HtmlHead head{
        .title = fmt::format("check with seed {}", options_.seed),
        .version = kVersion,
        .plugin = fmt::format("{} {} on device {}", hello.plugin.name, hello.plugin.version,
                              device_name(options_.bench.device)),
        .summary = summary_text(summary_)};
    return write_text_file(options_.html_path, html_report(head, shown));
  }

  Result<void> tell_ci(const Hello& hello) const {
    const std::vector<Record>& news =
        options_.baseline_path.empty() ? findings_.records() : findings_.news();
    if (!options_.junit_path.empty())
      KV_RETURN_IF_ERROR(write_text_file(options_.junit_path, junit_xml(summary_, news)));
    if (!options_.sarif_path.empty())
      KV_RETURN_IF_ERROR(
          write_text_file(options_.sarif_path, json_text(sarif_json(news, kVersion), 2) + "\n"));
    if (!options_.html_path.empty()) KV_RETURN_IF_ERROR(draw(news, hello));
    for (size_t i = 0; options_.annotations && i < news.size(); ++i)
      output_.say(github_annotation(news[i]));
    if (options_.write_baseline_path.empty()) return {};
    return write_baseline(options_.write_baseline_path, findings_.faults());
  }

  nlohmann::ordered_json json(const Hello& hello, ExitCode code) const {
    nlohmann::ordered_json json;
    json["kverify"] = kVersion;
    json["command"] = "check";
    json["level"] = options_.level;
    json["device"] = device_name(options_.bench.device);
    json["plugin"] = {{"name", hello.plugin.name}, {"version", hello.plugin.version}};
    json["seed"] = options_.seed;
    if (!options_.bench.checks.empty()) json["checks"] = options_.bench.checks;
    if (options_.exhaustive) {
      json["exhaustive"] = {{"shard", shard_.index + 1}, {"shards", shard_.count}, {"due", due_}};
    }
    json["drawn"] = source_.drawn();
    json["summary"] = summary_json(summary_);
    if (engine_) json["stats"] = history_json(histories_);
    json["warp_instructions"] = warp_instructions_;
    json["stopped_early"] = stopped_early_;
    json["failures"] = findings_.json();
    json["exit_code"] = static_cast<int>(code);
    return json;
  }

  const CheckOptions& options_;
  Shard shard_;
  uint64_t due_ = 0;  // small cases
  const bool engine_ = options_.level == "engine";
  HistoryStats histories_;
  Output output_;
  Progress progress_;
  FindingSink findings_;
  CaseSource source_;
  RunSummary summary_;
  KnownFaults known_;  // of the baseline
  uint64_t warp_instructions_ = 0;
  uint64_t runs_ = 0;  // judged: of cases and of their images
  bool stopped_early_ = false;
  Clock::time_point started_;
};

}  // namespace

Result<ExitCode> check(const CheckOptions& options) {
  const std::vector<WrittenFile> written = {{"--junit", options.junit_path},
                                            {"--sarif", options.sarif_path},
                                            {"--html", options.html_path},
                                            {"--write-baseline", options.write_baseline_path},
                                            {"--json", options.json_path.value_or("")}};
  KV_RETURN_IF_ERROR(require_different_files(written));
  KV_RETURN_IF_ERROR(require_folders(written));
  KV_ASSIGN_OR_RETURN(const Shard shard, parse_shard(options.shard));
  if (!options.exhaustive && shard.count > 1) {
    return bad_input("--shard: expected --exhaustive, whose cases have numbers");
  }
  const bool engine = options.level == "engine";
  if (engine && options.exhaustive) {
    return bad_input(
        "--exhaustive: expected --level kernel, got engine: histories have no small "
        "space of their own");
  }
  if (engine && !options.bench.suppressions_path.empty()) {
    return bad_input("--suppress: expected --level kernel, got engine");
  }
  if (!options.exhaustive && !is_corpus(options.corpus)) {
    const std::string what = options.corpus + ": expected a folder with seeds/ or regression/";
    if (options.corpus != CheckOptions().corpus) return bad_input(what + ", got neither");
    std::fprintf(stderr, "kverify: note: %s here; no case is replayed, only drawn ones run\n",
                 what.c_str());
  }
  return Check(options, shard).run();
}

}  // namespace kv::cli
