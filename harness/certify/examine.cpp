#include "harness/certify/examine.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <tuple>
#include <utility>

#include "harness/certify/history_examine.h"
#include "harness/certify/interrupt.h"
#include "harness/certify/run_folder.h"
#include "harness/simt/control/check_names.h"

namespace kv {
namespace {

constexpr uint64_t kKeptBytesMax = uint64_t{64} << 20;  // of results; a larger case runs again
/// To start a worker and to read the kernels of a library costs as much as 60 small cases.
constexpr uint32_t kProcessCasesMax = 4096;
constexpr size_t kKeptMax = 4;  // runs whose related cases are still to come

/// The rest of the oldest case of the runner: its operations go to `take`.
Result<RunEnd> run_rest(CaseRunner& runner, const std::function<void(const OpObservation&)>& take) {
  for (;;) {
    KV_ASSIGN_OR_RETURN(CaseRunner::Event event, runner.next());
    if (auto* end = std::get_if<RunEnd>(&event)) return std::move(*end);
    take(std::get<OpObservation>(event));
  }
}

/// The latest runs of cases that come again with a relation.
class KeptRuns {
 public:
  void keep(const Case& c, BaseRun run) {
    if (run.bytes() > kKeptBytesMax) return;
    runs_.emplace_back(c, std::move(run));
    if (runs_.size() > kKeptMax) runs_.pop_front();
  }
  /// The run of a case but for its relation, which is then forgotten.
  std::optional<BaseRun> take(Case c) {
    if (runs_.empty() || c.exec.relation.empty()) return std::nullopt;
    c.exec.relation.clear();
    c.exec.relation_seed = 0;
    const auto found =
        std::ranges::find_if(runs_, [&](const auto& kept) { return kept.first == c; });
    if (found == runs_.end()) return std::nullopt;
    std::optional<BaseRun> run = std::move(found->second);
    runs_.erase(found);
    return run;
  }

 private:
  std::deque<std::pair<Case, BaseRun>> runs_;
};

/// A pair whose case ran before, where it did; the image is then all that runs.
Result<Pair> submit_pair(CaseRunner& runner, Case c, KeptRuns& kept) {
  std::optional<BaseRun> base = kept.take(c);
  if (!base) return kv::submit_pair(runner, std::move(c));
  KV_ASSIGN_OR_RETURN(std::optional<Image> image, image_of(c));
  if (!image) return kv::submit_pair(runner, std::move(c));
  KV_RETURN_IF_ERROR(runner.submit(image->c));
  return Pair{std::move(c), std::move(image), std::move(base)};
}

Result<void> run_unjudged(CaseRunner& runner, const Case& c) {
  KV_RETURN_IF_ERROR(runner.submit(c));
  KV_ASSIGN_OR_RETURN(const RunEnd end, run_rest(runner, [](const OpObservation&) {}));
  static_cast<void>(end);
  return {};
}

}  // namespace

RunnerOptions runner_options(const BenchOptions& bench, const std::string& folder) {
  RunnerOptions options;
  options.device = bench.device;
  options.plugin_path = bench.plugin_path.empty() ? default_plugin_path() : bench.plugin_path;
  options.executable = bench.executable;
  options.folder = folder;
  options.process_cases_max = kProcessCasesMax;
  options.silence_max = std::chrono::milliseconds(static_cast<int64_t>(bench.call_seconds * 1000));
  options.memory_bytes_max = bench.memory_mib << 20;
  options.checks = bench.checks;
  options.interrupted = &interrupted();
  return options;
}

Result<Pair> submit_pair(CaseRunner& runner, Case c) {
  KV_ASSIGN_OR_RETURN(std::optional<Image> image, image_of(c));
  KV_RETURN_IF_ERROR(runner.submit(c));
  if (image) KV_RETURN_IF_ERROR(runner.submit(image->c));
  return Pair{std::move(c), std::move(image)};
}

Result<Examined> judge_next(CaseRunner& runner, const JudgeOptions& judging, Pair pair,
                            const std::function<void(const OpObservation&)>& progress) {
  PairJudge judge(std::move(pair.c), std::move(pair.image), runner.hello().plugin, judging);
  if (pair.keep) judge.keep_run();
  const bool ran_before = pair.base.has_value();
  if (ran_before) judge.take_run(std::move(*pair.base));
  const auto take = [&](const OpObservation& observation) {
    judge.add(observation);
    if (progress) progress(observation);
  };
  Examined examined;
  if (!ran_before) {
    KV_ASSIGN_OR_RETURN(const RunEnd end, run_rest(runner, take));
    judge.end_case(end);
    examined.output = end.output;
    examined.warp_instructions = end.warp_instructions;
    if (pair.keep) examined.kept = judge.run();
  }
  RunEnd image_end;
  if (judge.has_image()) {
    KV_ASSIGN_OR_RETURN(image_end, run_rest(runner, take));
    examined.runs += !ran_before;
    examined.warp_instructions += image_end.warp_instructions;
    if (examined.output.empty()) examined.output = image_end.output;
  }
  PairVerdict told = judge.finish(judge.has_image() ? &image_end : nullptr);
  examined.after_itself = judge.has_image() && !told.is_image && !ran_before;
  examined.c = std::move(told.c);
  examined.verdict = std::move(told.verdict);
  return examined;
}

bool same_failure(const Verdict& a, const Verdict& b) {
  const auto identity = [](const Verdict& v) {
    const Divergence d = v.divergence.value_or(Divergence{});
    return std::tuple(v.outcome, v.stage, v.failure_class, d.op_index, d.request, d.layer, d.head,
                      d.query_slot, d.dimension, d.got_bits);
  };
  return identity(a) == identity(b);
}

struct Examiner::State {
  BenchOptions bench;
  JudgeOptions judging;
  RunFolder folder;
  std::optional<CaseRunner> runner;
  std::optional<HistoryBench> histories;
  std::deque<Pair> pending;
  KeptRuns kept;

  Result<void> certify(Examined& examined);
  Result<Examined> examine_engine(const Case& c);
};

/// One run of a history, and once more in a fresh process, recorded, when it fails.
Result<Examined> Examiner::State::examine_engine(const Case& c) {
  if (!histories) histories.emplace(bench);
  KV_ASSIGN_OR_RETURN(Examined first,
                      examine_history(*histories, c, {.value_steps = judging.sample_rows}));
  if (first.verdict.outcome != Outcome::kFail) return first;
  histories->refresh();
  KV_ASSIGN_OR_RETURN(Examined again, examine_once(bench, judging, c, {}));
  if (same_failure(first.verdict, again.verdict)) return again;
  first.verdict.outcome = Outcome::kNondeterministic;
  first.verdict.message = "seen once, and not again in a fresh process: " + first.verdict.message;
  return first;
}

Examiner::Examiner() : state_(std::make_unique<State>()) {}
Examiner::Examiner(Examiner&&) noexcept = default;
Examiner& Examiner::operator=(Examiner&&) noexcept = default;
Examiner::~Examiner() = default;

Result<JudgeOptions> judging_on(const BenchOptions& bench, JudgeOptions judging) {
  if (!bench.suppressions_path.empty()) {
    KV_ASSIGN_OR_RETURN(judging.suppressions, read_suppressions(bench.suppressions_path));
  }
  if (!bench.checks.empty())
    judging.leaks_fail = (checks_named(bench.checks).value_or(0) & KV_SIMT_CHECK_LEAK) != 0;
  return judging;
}

Result<Examiner> Examiner::start(const BenchOptions& bench, const JudgeOptions& judging) {
  Examiner examiner;
  State& s = *examiner.state_;
  s.bench = bench;
  KV_ASSIGN_OR_RETURN(s.judging, judging_on(bench, judging));
  KV_ASSIGN_OR_RETURN(s.folder, RunFolder::create());
  KV_ASSIGN_OR_RETURN(s.runner, CaseRunner::start(runner_options(bench, s.folder.path())));
  return examiner;
}

const Hello& Examiner::hello() const { return state_->runner->hello(); }
DrawOptions Examiner::history_drawing() {
  if (!state_->histories) state_->histories.emplace(state_->bench);
  return {.offered = state_->histories->offers()};
}

Result<void> Examiner::submit(Case c, Keep keep) {
  State& s = *state_;
  if (c.engine) {
    s.pending.push_back({std::move(c), std::nullopt});
    return {};
  }
  KV_ASSIGN_OR_RETURN(Pair pair, submit_pair(*s.runner, std::move(c), s.kept));
  pair.keep = keep == Keep::kForItsRelation && !pair.image;
  s.pending.push_back(std::move(pair));
  return {};
}

Result<Examined> Examiner::next(const std::function<void(const OpObservation&)>& progress) {
  State& s = *state_;
  Pair pair = std::move(s.pending.front());
  s.pending.pop_front();
  if (pair.c.engine) return s.examine_engine(pair.c);
  KV_ASSIGN_OR_RETURN(Examined examined,
                      judge_next(*s.runner, s.judging, std::move(pair), progress));
  if (examined.kept) s.kept.keep(examined.c, *std::exchange(examined.kept, std::nullopt));
  if (examined.verdict.outcome != Outcome::kFail) return examined;
  s.runner->refresh();
  KV_RETURN_IF_ERROR(s.certify(examined));
  return examined;
}

Result<void> Examiner::State::certify(Examined& examined) {
  std::vector<Case> history = runner->history();
  if (examined.after_itself && !history.empty()) history.pop_back();
  const auto again_after = [&](size_t count) -> Result<bool> {
    const std::vector<Case> tail(history.end() - static_cast<ptrdiff_t>(count), history.end());
    KV_ASSIGN_OR_RETURN(const Examined again, examine_once(bench, judging, examined.c, tail));
    if (!same_failure(again.verdict, examined.verdict)) return false;
    examined.preceding = tail;
    return true;
  };
  KV_ASSIGN_OR_RETURN(bool again, again_after(0));
  for (size_t count = 1; !again && !history.empty(); count *= 4) {
    KV_ASSIGN_OR_RETURN(again, again_after(std::min(count, history.size())));
    if (count >= history.size()) break;
  }
  if (again) return {};
  examined.verdict.outcome = Outcome::kNondeterministic;
  examined.verdict.message = "seen once, and not again in a fresh process, alone or after the " +
                             std::to_string(history.size()) +
                             " cases that had run before it: " + examined.verdict.message;
  return {};
}

Result<Examined> examine_once(const BenchOptions& bench, const JudgeOptions& judging, const Case& c,
                              const std::vector<Case>& preceding) {
  if (c.engine) {
    HistoryBench histories(bench);
    return examine_history(histories, c, {.value_steps = judging.sample_rows, .record = true});
  }
  KV_ASSIGN_OR_RETURN(const RunFolder folder, RunFolder::create());
  RunnerOptions options = runner_options(bench, folder.path());
  options.process_cases_max = static_cast<uint32_t>(preceding.size()) + 2;
  KV_ASSIGN_OR_RETURN(CaseRunner runner, CaseRunner::start(options));
  for (const Case& before : preceding) KV_RETURN_IF_ERROR(run_unjudged(runner, before));
  KV_ASSIGN_OR_RETURN(Pair pair, submit_pair(runner, c));
  KV_ASSIGN_OR_RETURN(const JudgeOptions accepting, judging_on(bench, judging));
  return judge_next(runner, accepting, std::move(pair), {});
}

Result<Observation> observe_once(const BenchOptions& bench, const Case& c) {
  KV_ASSIGN_OR_RETURN(const RunFolder folder, RunFolder::create());
  KV_ASSIGN_OR_RETURN(CaseRunner runner, CaseRunner::start(runner_options(bench, folder.path())));
  KV_RETURN_IF_ERROR(runner.submit(c));
  Observation all;
  all.plugin = runner.hello().plugin;
  for (;;) {
    KV_ASSIGN_OR_RETURN(CaseRunner::Event event, runner.next());
    if (auto* operation = std::get_if<OpObservation>(&event)) {
      all.ops.push_back(std::move(*operation));
      continue;
    }
    all.end = std::get<RunEnd>(std::move(event));
    return all;
  }
}

bool is_finding(const Verdict& verdict) {
  return verdict.outcome == Outcome::kFail || verdict.outcome == Outcome::kNondeterministic;
}

}  // namespace kv
