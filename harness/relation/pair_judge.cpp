#include "harness/relation/pair_judge.h"

#include "harness/core/check.h"
#include "harness/relation/agreement.h"
#include "harness/relation/census.h"

namespace kv {
namespace {

bool is_sound(const Verdict& verdict) {
  return verdict.outcome == Outcome::kPass || verdict.outcome == Outcome::kVacuous;
}

void take(Failure failure, Verdict& verdict) {
  verdict.outcome = Outcome::kFail;
  verdict.stage = failure.stage;
  verdict.failure_class = std::move(failure.failure_class);
  verdict.message = std::move(failure.message);
  verdict.divergence = std::move(failure.divergence);
}

/// What a comparison needs of an observation.
OpObservation results_of(const OpObservation& observation, bool with_cache) {
  OpObservation kept;
  kept.op_index = observation.op_index;
  kept.layers = observation.layers;
  kept.variant = observation.variant;
  if (with_cache) kept.pages = observation.pages;
  return kept;
}

}  // namespace

PairJudge::PairJudge(Case c, std::optional<Image> image, PluginFacts facts, JudgeOptions options)
    : c_(std::move(c)),
      image_(std::move(image)),
      facts_(std::move(facts)),
      options_(std::move(options)) {
  options_.estimates = estimates_.get();
  estimates_->take_notes(image_.has_value());
  judge_.emplace(c_, options_);
  judge_->begin(facts_);
}

void PairJudge::add(const OpObservation& observation) {
  judge_->add(observation);
  if (!image_ && !keeps_) return;
  // Of a run that is kept it is not known which relation will ask for it.
  const bool with_cache = keeps_ || find_relation(c_.exec.relation)->same_cache;
  (case_verdict_ ? image_ops_ : case_ops_).push_back(results_of(observation, with_cache));
}

void PairJudge::end_case(const RunEnd& end) {
  case_verdict_ = judge_->finish(end);
  if (image_) begin_image();
}

void PairJudge::begin_image() {
  estimates_->take_notes(false);
  options_.estimates = estimates_.get();
  judge_.emplace(image_->c, options_);
  judge_->begin(facts_);
}

void PairJudge::take_run(BaseRun run) {
  KV_CHECK(image_ && !case_verdict_, "a run that was judged before serves an image alone");
  case_verdict_ = std::move(run.verdict);
  case_ops_ = std::move(run.ops);
  estimates_ = std::move(run.estimates);
  begin_image();
}

std::optional<BaseRun> PairJudge::run() const {
  KV_CHECK(keeps_ && case_verdict_, "asked for a run that was not kept");
  if (!is_sound(*case_verdict_)) return std::nullopt;
  return BaseRun{*case_verdict_, case_ops_, estimates_};
}

uint64_t BaseRun::bytes() const {
  uint64_t bytes = sizeof *this + estimates->bytes();
  for (const OpObservation& op : ops) {
    bytes += sizeof op;
    for (const LayerResult& layer : op.layers)
      bytes += sizeof layer + layer.output.size() + layer.lse.size() * sizeof(float);
    for (const PageImage& page : op.pages) bytes += sizeof page + page.bytes.size();
  }
  return bytes;
}

PairVerdict PairJudge::finish(const RunEnd* image_end) {
  PairVerdict told{.c = std::move(c_), .verdict = std::move(*case_verdict_)};
  if (!image_ || image_end == nullptr) return told;
  Verdict verdict = judge_->finish(*image_end);
  if (!is_sound(told.verdict)) {
    told.c.exec.relation.clear();
    told.c.exec.relation_seed = 0;
    return told;
  }
  if (verdict.outcome == Outcome::kUnsupported) return told;  // nothing to hold it against
  if (!is_sound(verdict))
    return {.c = std::move(image_->c), .verdict = std::move(verdict), .is_image = true};
  compare(told);
  return told;
}

void PairJudge::compare(PairVerdict& told) const {
  const Relation* relation = find_relation(told.c.exec.relation);
  const Seen base{told.c, case_ops_}, seen{image_->c, image_ops_};
  std::optional<Failure> failure;
  if (relation->name == "census") failure = wrong_census(seen);
  if (!failure && bits_promised(*relation, facts_))
    failure = disagreement(base, *image_, seen, facts_);
  if (!failure && cache_promised(*relation, facts_)) failure = cache_disagreement(base, seen);
  if (failure) take(std::move(*failure), told.verdict);
}

}  // namespace kv
