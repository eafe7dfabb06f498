#include "harness/judge/judge.h"

#include "harness/case/timeline.h"
#include "harness/core/check.h"
#include "harness/judge/contract_stage.h"
#include "harness/judge/device_stage.h"
#include "harness/judge/merge_stage.h"
#include "harness/judge/provenance_stage.h"
#include "harness/judge/value_stage.h"
#include "harness/plugin/kverify_plugin.h"
#include "reference/host_arithmetic.h"

namespace kv {

struct Judge::State {
  const Case c;
  const JudgeOptions options;
  std::optional<Timeline> timeline;
  PluginFacts facts;
  PoolImage pool;
  std::optional<Conversion> conversion;  // of a case that is lawful
  ValueStage values;
  Verdict verdict;
  uint32_t next_op = 0;
  bool decided = false;

  State(const Case& from, JudgeOptions o)
      : c(from),
        options(std::move(o)),
        pool(c),
        values({.sample_rows = options.sample_rows,
                .profile_work = options.profile_work,
                .distribution = options.distribution,
                .estimates = options.estimates}) {
    if (const auto defect = reference::host_arithmetic_defect(); !defect.empty()) {
      error("This process cannot judge: " + std::string(defect));
      return;
    }
    Result<Timeline> created = Timeline::create(c);
    if (created.ok()) {
      timeline.emplace(std::move(created).value());
      conversion.emplace(c);
    } else if (created.error().kind == ErrorKind::kUnsupported) {
      settle(Outcome::kUnsupported, created.error().message);
    } else {
      error("The case is not valid: " + created.error().message);
    }
  }

  void settle(Outcome outcome, std::string message) {
    if (decided) return;
    decided = true;
    verdict.outcome = outcome;
    verdict.message = std::move(message);
  }
  void error(std::string message) { settle(Outcome::kError, std::move(message)); }
  void fail(Failure failure) {
    if (decided) return;
    settle(Outcome::kFail, std::move(failure.message));
    verdict.stage = failure.stage;
    verdict.failure_class = std::move(failure.failure_class);
    verdict.divergence = std::move(failure.divergence);
  }
  bool take_findings(const std::vector<DeviceFinding>& findings);
  void judge_operation(const OpObservation& seen);
  void judge_step(const StepView& view);
  std::optional<Failure> judge_contract(const StepView& view, const VisibleSets& visible);
  void judge_repeats(const OpObservation& seen);
  void judge_end(const RunEnd& end);
};

Judge::Judge(const Case& c, JudgeOptions options)
    : state_(std::make_unique<State>(c, std::move(options))) {}
Judge::~Judge() = default;
Judge::Judge(Judge&&) noexcept = default;
Judge& Judge::operator=(Judge&&) noexcept = default;

void Judge::begin(const PluginFacts& facts) { state_->facts = facts; }

bool Judge::decided() const { return state_->decided; }

void Judge::add(const OpObservation& observation) {
  if (!state_->decided) state_->judge_operation(observation);
}

// True when the findings decide the case.
bool Judge::State::take_findings(const std::vector<DeviceFinding>& all) {
  constexpr size_t kKept = 64;
  const std::vector<DeviceFinding> findings = not_suppressed(all, options.suppressions);
  verdict.stats.findings_suppressed += all.size() - findings.size();
  for (const DeviceFinding& f : findings) {
    if (verdict.findings.size() < kKept) verdict.findings.push_back(f);
  }
  if (auto failure = judge_findings(findings, {.leaks_fail = options.leaks_fail})) {
    fail(std::move(*failure));
    return true;
  }
  const std::string unknown = unsupported_instruction(findings);
  if (!unknown.empty()) settle(Outcome::kUnsupported, unknown);
  return !unknown.empty();
}

void Judge::State::judge_operation(const OpObservation& seen) {
  if (!timeline) return;
  if (seen.op_index != next_op || next_op >= c.ops.size()) {
    return error("The worker reported operation " + std::to_string(seen.op_index) +
                 ", expected operation " + std::to_string(next_op) + " of " +
                 std::to_string(c.ops.size()));
  }
  ++next_op;
  const PlannedStep step = timeline->apply(seen.op_index);
  // What was found in an operation without a variant was not found in the one before's.
  if (!seen.variant.empty() || !seen.findings.empty()) verdict.variant = seen.variant;
  const StepView view{c, facts, *timeline, step, seen, pool, *conversion};
  if (take_findings(seen.findings)) return;
  if (const std::string defect = malformed(view); !defect.empty()) {
    return error("The worker's report of operation " + std::to_string(seen.op_index) +
                 " is malformed: " + defect);
  }
  if (seen.status == OpStatus::kUnsupported || seen.status == OpStatus::kNotRun) {
    return settle(Outcome::kUnsupported, seen.message);
  }
  judge_step(view);
}

std::optional<Failure> Judge::State::judge_contract(const StepView& view,
                                                    const VisibleSets& visible) {
  if (auto failure = judge_trespasses(view.seen)) return failure;
  if (auto failure = judge_status(view.seen)) return failure;
  ContractCounts counts;
  auto failure = judge_rows(view, visible, counts);
  verdict.stats.rows_empty += counts.rows_empty;
  verdict.stats.rows_pad += counts.rows_pad;
  return failure;
}

void Judge::State::judge_step(const StepView& view) {
  const VisibleSets visible = visible_sets(view);
  std::optional<Failure> contract = judge_contract(view, visible);
  const bool symptom = contract && contract->symptom;
  if (contract && !symptom) fail(std::move(*contract));
  if (decided) return;
  ProvenanceCounts slots;
  std::optional<Failure> provenance = judge_provenance(view, slots);
  verdict.stats.slots_judged += slots.slots;
  for (const PageImage& image : view.seen.pages) pool.replace(image);
  if (provenance) fail(std::move(*provenance));
  if (symptom) fail(std::move(*contract));
  if (decided) return;
  if (auto wrong = values.judge(view, visible, verdict.stats)) fail(std::move(*wrong));
  if (!decided && view.seen.status == OpStatus::kOk) {
    if (auto wrong = judge_cascades(view, visible, values, verdict.stats)) fail(std::move(*wrong));
  }
  if (!decided) judge_repeats(view.seen);
}

void Judge::State::judge_repeats(const OpObservation& seen) {
  if (seen.repeat_differences.empty() || !(facts.promises & KV_PROMISE_DETERMINISTIC)) return;
  const RepeatDifference& r = seen.repeat_differences.front();
  settle(Outcome::kNondeterministic,
         "Repeat " + std::to_string(r.repeat) + " of operation " + std::to_string(seen.op_index) +
             " gave other bits in " + std::to_string(r.elements_changed) + " elements of the " +
             (r.lse ? "LSE" : "output") + " of layer " + std::to_string(r.layer) +
             "; the first is element " + std::to_string(r.element) + ", want " +
             hex_bits(r.lse ? DType::kF32 : c.shape.output_dtype, r.want_bits) + ", got " +
             hex_bits(r.lse ? DType::kF32 : c.shape.output_dtype, r.got_bits) +
             ". The plugin promises determinism.");
  verdict.stage = Stage::kMetamorphic;
  verdict.failure_class = "nondeterministic";
}

void Judge::State::judge_end(const RunEnd& end) {
  if (take_findings(end.findings)) return;
  if (auto failure = kv::judge_end(end)) return fail(std::move(*failure));
  if (end.outcome == RunOutcome::kUnsupported) {
    return settle(Outcome::kUnsupported, end.message);
  }
  if (end.outcome == RunOutcome::kEnvironment) return error(end.message);
  if (decided) return;
  if (next_op != c.ops.size()) {
    return error("The worker completed, but reported only " + std::to_string(next_op) + " of " +
                 std::to_string(c.ops.size()) + " operations");
  }
  const VerdictStats& s = verdict.stats;
  const bool said_something = s.rows_judged > s.rows_vacuous || s.rows_empty > 0;
  if (s.rows_vacuous > 0 && !said_something) {
    return settle(Outcome::kVacuous,
                  "Every row of values is vacuous: the assumed arithmetic permits errors as large "
                  "as the results");
  }
  if (!said_something && s.slots_judged == 0) {
    return settle(Outcome::kVacuous, "The case writes no slot and attends with no row");
  }
  settle(Outcome::kPass, "");
}

Verdict Judge::finish(const RunEnd& end) {
  KV_CHECK(state_ != nullptr, "finish() of a judge that is spent");
  state_->judge_end(end);
  Verdict verdict = std::move(state_->verdict);
  state_.reset();
  return verdict;
}

Verdict judge_observation(const Case& c, const Observation& observation, JudgeOptions options) {
  Judge judge(c, std::move(options));
  judge.begin(observation.plugin);
  for (const OpObservation& op : observation.ops) judge.add(op);
  return judge.finish(observation.end);
}

}  // namespace kv
