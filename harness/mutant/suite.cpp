#include "harness/mutant/suite.h"

#include "harness/relation/draw_related.h"
#include "harness/report/words.h"

namespace kv {
namespace {

void append(Bytes& to, const Bytes& from) { to.insert(to.end(), from.begin(), from.end()); }

/// As a draw until its shape is decided; then random numbers of its own.
class RelativeSource final : public ChoiceSource {
 public:
  RelativeSource(uint64_t seed, uint64_t origin, uint64_t number)
      : shared_(seed, origin), own_(~seed, number) {}
  void enter(Part part) override { is_own_ = part != Part::kSwarm && part != Part::kShape; }
  uint64_t below(uint64_t bound) override {
    return is_own_ ? own_.below(bound) : shared_.below(bound);
  }

 private:
  PhiloxSource shared_, own_;
  bool is_own_ = false;
};

/// How much a run costs must not tell mutants apart.
RunEnd without_costs(RunEnd end) {
  end.warp_instructions = 0;
  return end;
}

}  // namespace

Suite::Run Suite::run_case(const Case& c) const {
  Run run;
  run.end = run_kernel_case(c, *bench_, [&](const OpObservation& o) {
    append(run.bytes, encode_operation(0, o));
    run.ops.push_back(o);
  });
  append(run.bytes, encode_end(0, without_costs(run.end)));
  kv_simt_counters counters = {};
  counters.struct_bytes = sizeof counters;
  bench_->runtime.control->counters(&counters);
  run.digest = counters.values_digest;
  run.mutated = counters.mutated_executions;
  return run;
}

std::vector<Suite::Run> Suite::run_entry(const Entry& entry) const {
  std::vector<Run> runs;
  runs.push_back(run_case(entry.c));
  if (entry.image) runs.push_back(run_case(entry.image->c));
  return runs;
}

Verdict Suite::judge(const Entry& entry, const std::vector<Run>& runs) const {
  PairJudge judge(entry.c, entry.image, facts_, {});
  for (const OpObservation& o : runs[0].ops) judge.add(o);
  judge.end_case(runs[0].end);
  if (!entry.image) return judge.finish(nullptr).verdict;
  for (const OpObservation& o : runs[1].ops) judge.add(o);
  return judge.finish(&runs[1].end).verdict;
}

Result<bool> Suite::grow_by(ChoiceSource& choices, uint64_t origin) {
  Entry entry{.origin = origin};
  entry.c = draw_related(choices, {.variants = facts_.variants});
  KV_ASSIGN_OR_RETURN(entry.image, image_of(entry.c));
  bench_->runtime.control->clear_executions();  // what is counted is this draw's
  entry.runs = run_entry(entry);
  const Verdict verdict = judge(entry, entry.runs);
  if (verdict.outcome == Outcome::kFail || verdict.outcome == Outcome::kError)
    return bad_input("the unmutated plugin does not pass: " + verdict.message);
  if (verdict.outcome != Outcome::kPass) return false;
  entries_.push_back(std::move(entry));
  return true;
}

Result<bool> Suite::grow() {
  constexpr int kTriedMax = 20;
  for (int tried = 0; tried < kTriedMax; ++tried) {
    const uint64_t number = drawn_++;
    PhiloxSource choices(seed_, number);
    KV_ASSIGN_OR_RETURN(const bool grown, grow_by(choices, number));
    if (grown) return true;
  }
  return false;
}

Result<bool> Suite::grow_like(size_t entry) {
  constexpr int kTriedMax = 5;
  for (int tried = 0; tried < kTriedMax; ++tried) {
    const uint64_t origin = entries_[entry].origin;
    RelativeSource choices(seed_, origin, relatives_++);
    KV_ASSIGN_OR_RETURN(const bool grown, grow_by(choices, origin));
    if (grown) return true;
  }
  return false;
}

Result<Suite> Suite::create(const Bench& bench, const SuiteOptions& options) {
  Suite suite(bench, options.seed);
  while (suite.size() < options.cases) {
    KV_ASSIGN_OR_RETURN(const bool grown, suite.grow());
    if (!grown) break;
  }
  if (suite.size() == 0) return bad_input("the plugin supports none of the cases");
  return suite;
}

uint64_t Suite::cost(size_t index) const {
  uint64_t sum = 0;
  for (const Run& run : entries_[index].runs) sum += run.end.warp_instructions;
  return sum;
}

EntryOutcome Suite::run(size_t index) const {
  const Entry& entry = entries_[index];
  const std::vector<Run> runs = run_entry(entry);
  EntryOutcome outcome;
  for (size_t i = 0; i < runs.size(); ++i) {
    outcome.reached |= runs[i].mutated > 0;
    outcome.infected |= runs[i].digest != entry.runs[i].digest;
    outcome.propagated |= runs[i].bytes != entry.runs[i].bytes;
  }
  outcome.infected |= outcome.propagated;
  if (!outcome.propagated) return outcome;
  const Verdict verdict = judge(entry, runs);
  if (verdict.outcome == Outcome::kPass || verdict.outcome == Outcome::kVacuous) return outcome;
  outcome.killer = std::string(stage_name(verdict.stage)) + "/" +
                   (verdict.failure_class.empty() ? std::string(outcome_name(verdict.outcome))
                                                  : verdict.failure_class);
  return outcome;
}

}  // namespace kv
