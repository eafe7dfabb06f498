#include "harness/certify/reproduce.h"

#include "harness/certify/corpus.h"
#include "harness/certify/history_examine.h"

namespace kv {

Result<Reproducer> Reproducer::start(const BenchOptions& bench, const std::string& path,
                                     const Case& c) {
  Reproducer reproducer;
  reproducer.bench_ = bench;
  KV_ASSIGN_OR_RETURN(reproducer.judging_, judging_on(bench, {}));
  KV_ASSIGN_OR_RETURN(const std::vector<Case> cases, load_preceding(path, c));
  for (size_t i = 0; i < cases.size(); ++i) {
    reproducer.preceding_.emplace(c.exec.preceding[i], cases[i]);
  }
  if (c.engine) {
    reproducer.histories_.emplace(bench);
    return reproducer;
  }
  KV_ASSIGN_OR_RETURN(reproducer.folder_, RunFolder::create());
  KV_ASSIGN_OR_RETURN(reproducer.runner_,
                      CaseRunner::start(runner_options(bench, reproducer.folder_.path())));
  return reproducer;
}

Result<std::vector<Case>> Reproducer::preceding(const Case& c) const {
  std::vector<Case> cases;
  for (const std::string& name : c.exec.preceding) {
    const auto found = preceding_.find(name);
    if (found == preceding_.end()) return bad_input("exec.preceding: '" + name + "' is unknown");
    cases.push_back(found->second);
  }
  return cases;
}

Result<Reproduction> Reproducer::rate(const Case& c, uint32_t runs) {
  Reproduction all;
  KV_ASSIGN_OR_RETURN(const std::vector<Case> before, preceding(c));
  for (; all.runs < runs; ++all.runs) {
    KV_ASSIGN_OR_RETURN(Examined examined, examine_once(bench_, {}, c, before));
    const bool failed = is_finding(examined.verdict);
    all.failed += failed;
    if (failed) {
      const Fingerprint f = fingerprint_of(c, examined.verdict);
      if (all.fingerprint && f != *all.fingerprint) all.one_fault = false;
      if (all.fingerprint) continue;
      all.fingerprint = f;
    }
    if (failed || !all.fingerprint) all.examined = std::move(examined);
  }
  all.examined.preceding = before;
  return all;
}

Result<Verdict> Reproducer::run(const Case& c) {
  if (c.engine) {
    KV_ASSIGN_OR_RETURN(Examined examined, examine_history(*histories_, c, {}));
    return examined.verdict;
  }
  KV_ASSIGN_OR_RETURN(Pair pair, submit_pair(*runner_, c));
  KV_ASSIGN_OR_RETURN(Examined examined, judge_next(*runner_, judging_, std::move(pair), {}));
  return examined.verdict;
}

void Reproducer::refresh(const Case& c) {
  if (c.engine) {
    histories_->refresh();
  } else {
    runner_->refresh();
  }
}

Result<bool> Reproducer::fails(const Case& candidate, const Fingerprint& pinned) {
  const auto same = [&](const Verdict& verdict) {
    return is_finding(verdict) && fingerprint_of(candidate, verdict) == pinned;
  };
  if (!candidate.exec.preceding.empty()) {
    KV_ASSIGN_OR_RETURN(const std::vector<Case> before, preceding(candidate));
    KV_ASSIGN_OR_RETURN(const Examined examined, examine_once(bench_, {}, candidate, before));
    return same(examined.verdict);
  }
  KV_ASSIGN_OR_RETURN(Verdict verdict, run(candidate));
  if (!same(verdict)) return false;
  refresh(candidate);
  KV_ASSIGN_OR_RETURN(verdict, run(candidate));
  if (same(verdict)) return true;
  ++unstable_;
  return false;
}

Result<Examined> examine_again(const BenchOptions& bench, const std::string& path, const Case& c) {
  KV_ASSIGN_OR_RETURN(const std::vector<Case> preceding, load_preceding(path, c));
  KV_ASSIGN_OR_RETURN(Examined examined, examine_once(bench, {}, c, preceding));
  if (!is_finding(examined.verdict)) return examined;
  KV_ASSIGN_OR_RETURN(const Examined again, examine_once(bench, {}, c, preceding));
  if (!same_failure(again.verdict, examined.verdict))
    examined.verdict.outcome = Outcome::kNondeterministic;
  examined.preceding = preceding;
  return examined;
}

}  // namespace kv
