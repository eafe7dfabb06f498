// `kverify diff`: the same cases on two builds, held against each other and against the reference.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/certify/corpus.h"
#include "harness/certify/examine.h"
#include "harness/certify/interrupt.h"
#include "harness/certify/run_folder.h"
#include "harness/cli/case_source.h"
#include "harness/cli/commands.h"
#include "harness/cli/findings.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"
#include "harness/diff/bit_changes.h"
#include "harness/judge/fingerprint.h"
#include "harness/report/words.h"

namespace kv::cli {
namespace {

constexpr size_t kToldMax = 20;  // failures in the text; JSON has all

/// One build: its process, what it answered to the case at hand, its errors.
class Build {
 public:
  static Result<Build> start(BenchOptions bench, const std::string& plugin_path) {
    Build build;
    build.bench_ = std::move(bench);
    build.bench_.plugin_path = plugin_path;
    KV_ASSIGN_OR_RETURN(build.judging_, judging_on(build.bench_, {}));
    KV_ASSIGN_OR_RETURN(build.folder_, RunFolder::create());
    KV_ASSIGN_OR_RETURN(build.runner_,
                        CaseRunner::start(runner_options(build.bench_, build.folder_.path())));
    return build;
  }

  const Hello& hello() const { return runner_->hello(); }
  const std::vector<OpObservation>& steps() const { return steps_; }
  const ErrorDistribution& errors() const { return errors_; }

  Result<void> submit(const Case& c) {
    KV_ASSIGN_OR_RETURN(pair_, submit_pair(*runner_, c));
    return {};
  }
  /// A failure is repeated in a fresh process: one that does not come again is no property of the
  /// build.
  Result<Verdict> finish() {
    steps_.clear();
    const Case c = pair_.c;
    JudgeOptions counting = judging_;
    counting.distribution = &errors_;
    KV_ASSIGN_OR_RETURN(Examined examined,
                        judge_next(*runner_, counting, std::move(pair_),
                                   [this](const OpObservation& seen) { steps_.push_back(seen); }));
    if (examined.verdict.outcome != Outcome::kFail) return std::move(examined.verdict);
    runner_->refresh();
    KV_ASSIGN_OR_RETURN(const Examined again, examine_once(bench_, judging_, c, {}));
    if (!same_failure(again.verdict, examined.verdict))
      examined.verdict.outcome = Outcome::kNondeterministic;
    return std::move(examined.verdict);
  }

 private:
  BenchOptions bench_;
  JudgeOptions judging_;
  RunFolder folder_;
  std::optional<CaseRunner> runner_;
  Pair pair_;
  std::vector<OpObservation> steps_;
  ErrorDistribution errors_;
};

struct Difference {
  std::string name;  // of the case
  Outcome before{}, after{};
  std::string fault;  // of the new build
};

class Differ {
 public:
  Differ(const DiffOptions& options, Build before, Build after)
      : options_(options),
        output_(options.json_path),
        before_(std::move(before)),
        after_(std::move(after)),
        source_({.files = corpus_files(options.corpus),
                 .seed = options.seed,
                 .drawn_max = options.cases,
                 .drawing = drawing()}) {}

  Result<ExitCode> run() {
    while (!interrupted()) {
      KV_ASSIGN_OR_RETURN(auto next, source_.next());
      if (!next) break;
      KV_RETURN_IF_ERROR(compare(std::move(next->c), next->path));
    }
    progress_.clear();
    return finish();
  }

 private:
  /// What both builds offer.
  DrawOptions drawing() const {
    const Hello &a = before_.hello(), &b = after_.hello();
    DrawOptions both{.offered = OfferSet(a.offered.bits() & b.offered.bits())};
    for (const std::string& variant : a.plugin.variants) {
      const auto& other = b.plugin.variants;
      if (std::find(other.begin(), other.end(), variant) != other.end())
        both.variants.push_back(variant);
    }
    return both;
  }

  Result<void> compare(Case c, const std::string& path) {
    c.exec.relation.clear();  // two builds are compared, not two cases
    KV_RETURN_IF_ERROR(before_.submit(c));
    KV_RETURN_IF_ERROR(after_.submit(c));
    KV_ASSIGN_OR_RETURN(const Verdict was, before_.finish());
    KV_ASSIGN_OR_RETURN(const Verdict is, after_.finish());
    ++cases_;
    ++outcomes_[fmt::format("{} -> {}", outcome_name(was.outcome), outcome_name(is.outcome))];
    worst_is_ = worst(worst_is_, code_of(is, was));
    compared_ += was.outcome != Outcome::kUnsupported && is.outcome != Outcome::kUnsupported;
    const bool differs = was.outcome != is.outcome;
    if (differs || is_finding(is)) {
      differences_.push_back({path.empty() ? c.name : path, was.outcome, is.outcome,
                              is_finding(is) ? fingerprint_of(c, is).text() : ""});
    }
    const size_t steps = std::min(before_.steps().size(), after_.steps().size());
    for (size_t i = 0; i < steps; ++i) add(c, before_.steps()[i], after_.steps()[i]);
    progress_.show(fmt::format("{} cases", cases_));
    return {};
  }

  /// What a case says of the new build alone.
  static ExitCode code_of(const Verdict& is, const Verdict& was) {
    if (is.outcome == Outcome::kError || was.outcome == Outcome::kError)
      return ExitCode::kEnvironment;
    if (is.outcome == Outcome::kNondeterministic) return ExitCode::kNondeterministic;
    const bool new_failure = is.outcome == Outcome::kFail && was.outcome != Outcome::kFail;
    return new_failure ? ExitCode::kFailed : ExitCode::kPass;
  }

  void add(const Case& c, const OpObservation& was, const OpObservation& is) {
    if (was.layers.empty() && is.layers.empty()) return;
    const std::string variant =
        was.variant == is.variant ? is.variant : was.variant + " -> " + is.variant;
    BitChanges changes;
    add_step(c, was, is, changes);
    changes_[variant].merge(changes);
    all_.merge(changes);
  }

  Result<ExitCode> finish() {
    const auto moved = shifts(before_.errors(), after_.errors(), options_.limits);
    const bool regressed =
        std::any_of(moved.begin(), moved.end(), [](const Shift& s) { return s.regressed; });
    ExitCode code = worst_is_;
    if (regressed || (options_.exact && all_.any())) code = worst(code, ExitCode::kFailed);
    if (code == ExitCode::kPass && compared_ == 0)
      code = cases_ > 0 ? ExitCode::kUnsupported : ExitCode::kVacuous;
    output_.say(text(moved, regressed));
    KV_RETURN_IF_ERROR(output_.finish(json(moved, regressed, code)));
    return interrupted() ? static_cast<ExitCode>(kInterruptedStatus) : code;
  }

  std::string text(const std::vector<Shift>& moved, bool regressed) const {
    std::string text = fmt::format("{} cases, old -> new:", cases_);
    for (const auto& [name, count] : outcomes_) text += fmt::format(" {} {},", count, name);
    text.back() = '\n';
    for (size_t i = 0; i < std::min(differences_.size(), kToldMax); ++i) {
      const Difference& d = differences_[i];
      text += fmt::format("  {}: {} -> {}{}{}\n", d.name, outcome_name(d.before),
                          outcome_name(d.after), d.fault.empty() ? "" : ", ", d.fault);
    }
    if (differences_.size() > kToldMax)
      text += fmt::format("  and {} more\n", differences_.size() - kToldMax);
    text +=
        "\nbits, by variant:      steps changed        rows changed       elements changed"
        "    LSE changed   pages  most ulps\n";
    for (const auto& [variant, changes] : changes_) text += line_of(variant, changes);
    if (changes_.size() > 1) text += line_of("all", all_);
    text += "\n|error| / bound:      old        new\n";
    for (const Shift& s : moved)
      text += fmt::format("  {:<10} {:>10.5f} {:>10.5f}{}\n", s.name, s.before, s.after,
                          s.regressed ? "  regressed" : "");
    return text + fmt::format("\n{}{}\n", all_.any() ? "bits changed" : "all bits are equal",
                              regressed ? fmt::format("; errors grew by more than {} times, beyond "
                                                      "{} of the bound",
                                                      options_.limits.factor, options_.limits.floor)
                                        : "");
  }

  static std::string line_of(const std::string& variant, const BitChanges& c) {
    return fmt::format(
        "  {:<18} {:>6} of {:<6} {:>8} of {:<8} {:>9} of {:<9} {:>7} of {:<7} {:>4} "
        " {}{}\n",
        variant, c.steps_changed, c.steps, c.rows_changed, c.rows, c.elements_changed, c.elements,
        c.lse_changed, c.lse, c.pages_changed,
        c.ulps_max == ~uint64_t{0} ? "NaN" : std::to_string(c.ulps_max),
        c.steps_incomparable == 0 ? "" : fmt::format("; {} not comparable", c.steps_incomparable));
  }

  static nlohmann::ordered_json json_of(const BitChanges& c) {
    return {{"steps", c.steps},
            {"steps_changed", c.steps_changed},
            {"steps_incomparable", c.steps_incomparable},
            {"rows", c.rows},
            {"rows_changed", c.rows_changed},
            {"elements", c.elements},
            {"elements_changed", c.elements_changed},
            {"lse", c.lse},
            {"lse_changed", c.lse_changed},
            {"pages", c.pages},
            {"pages_changed", c.pages_changed},
            {"ulps_max", c.ulps_max}};
  }

  nlohmann::ordered_json json(const std::vector<Shift>& moved, bool regressed,
                              ExitCode code) const {
    nlohmann::ordered_json json = {{"kverify", kVersion},
                                   {"command", "diff"},
                                   {"device", device_name(options_.bench.device)},
                                   {"cases", cases_},
                                   {"outcomes", outcomes_},
                                   {"equal_bits", !all_.any()},
                                   {"bits", json_of(all_)}};
    for (const auto& [variant, changes] : changes_) json["variants"][variant] = json_of(changes);
    for (const Shift& s : moved)
      json["error_over_bound"][s.name] = {
          {"old", s.before}, {"new", s.after}, {"regressed", s.regressed}};
    json["elements_judged"] = {{"old", before_.errors().count()}, {"new", after_.errors().count()}};
    json["regressed"] = regressed;
    json["differences"] = nlohmann::ordered_json::array();
    for (const Difference& d : differences_)
      json["differences"].push_back({{"case", d.name},
                                     {"old", outcome_name(d.before)},
                                     {"new", outcome_name(d.after)},
                                     {"fingerprint", d.fault}});
    json["exit_code"] = static_cast<int>(code);
    return json;
  }

  const DiffOptions& options_;
  const Output output_;
  Build before_, after_;
  CaseSource source_;
  Progress progress_;
  uint64_t cases_ = 0, compared_ = 0;
  std::map<std::string, uint64_t> outcomes_;
  std::map<std::string, BitChanges> changes_;
  BitChanges all_;
  std::vector<Difference> differences_;
  ExitCode worst_is_ = ExitCode::kPass;
};

}  // namespace

Result<ExitCode> diff(const DiffOptions& options) {
  KV_ASSIGN_OR_RETURN(Build before, Build::start(options.bench, options.before_path));
  KV_ASSIGN_OR_RETURN(Build after, Build::start(options.bench, options.after_path));
  return Differ(options, std::move(before), std::move(after)).run();
}

}  // namespace kv::cli
