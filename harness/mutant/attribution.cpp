#include "harness/mutant/attribution.h"

#include "harness/relation/pair_judge.h"
#include "harness/report/words.h"

namespace kv {
namespace {

Result<Verdict> verdict_of(const Bench& bench, const PluginFacts& facts, const Case& c) {
  KV_ASSIGN_OR_RETURN(std::optional<Image> image, image_of(c));
  PairJudge judge(c, image, facts, {});
  const auto add = [&](const OpObservation& seen) { judge.add(seen); };
  judge.end_case(run_kernel_case(c, bench, add));
  if (!image) return judge.finish(nullptr).verdict;
  const RunEnd end = run_kernel_case(image->c, bench, add);
  return judge.finish(&end).verdict;
}

}  // namespace

Result<Attribution> attribute(const Bench& bench, const std::vector<Case>& cases) {
  if (bench.runtime.control == nullptr) return environment_error("this needs the CPU device");
  const PluginFacts facts = plugin_facts(bench.plugin);
  Attribution all;
  for (const Case& c : cases) {
    KV_ASSIGN_OR_RETURN(const Verdict verdict, verdict_of(bench, facts, c));
    all.cases += verdict.outcome == Outcome::kPass || verdict.outcome == Outcome::kFail;
    if (verdict.outcome != Outcome::kFail) continue;
    ++all.objectors[{stage_name(verdict.stage), verdict.failure_class}];
  }
  return all;
}

}  // namespace kv
