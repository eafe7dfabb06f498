#include "harness/judge/reach_coverage.h"

#include <algorithm>

#include "harness/case/timeline.h"

namespace kv {
namespace {

// Those that put each key's weight or value apart come first.
constexpr Design kDesigns[] = {Design::kCensus,          Design::kSparseCode, Design::kUniformExact,
                               Design::kBoundaryNeedles, Design::kNormal,     Design::kAscending,
                               Design::kConstantValue,   Design::kLargeScores};

// Every row of a step that attends does so with all the slots that its request then has.
Case with_all_rows(const Case& c, Timeline timeline) {
  Case wide = c;
  for (uint32_t i = 0; i < c.ops.size(); ++i) {
    const PlannedStep plan = timeline.apply(i);
    auto* step = std::get_if<op::Step>(&wide.ops[i]);
    for (size_t r = 0; step != nullptr && r < step->rows.size(); ++r) {
      op::StepRow& row = step->rows[r];
      if (row.queries > 0) row.queries = std::max(row.queries, plan.rows[r].kv_length);
    }
  }
  return wide;
}

class Search {
 public:
  explicit Search(const ReachOptions& options) : options_(options) {}

  // Whether it is complete. Cases that the limits refuse are passed over.
  Result<bool> look_at(Case c) {
    if (!Timeline::create(c).ok()) return false;
    KV_ASSIGN_OR_RETURN(CaseCoverage coverage, case_coverage(c, options_.coverage));
    ++best_.looked_at;
    const bool better =
        best_.looked_at == 1 || share(keys_covered(coverage)) > share(keys_covered(best_.coverage));
    const bool complete = coverage.complete();
    if (better || complete) {
      best_.c = std::move(c);
      best_.coverage = std::move(coverage);
    }
    return complete;
  }
  ReachedCase take() { return std::move(best_); }

 private:
  static double share(const FaultCount& count) {
    if (count.possible == 0) return 0;
    return static_cast<double>(count.certified) / static_cast<double>(count.possible);
  }

  const ReachOptions& options_;
  ReachedCase best_;
};

}  // namespace

FaultCount keys_covered(const CaseCoverage& coverage) {
  FaultCount all;
  for (const HeadCoverage& head : coverage.heads) {
    all.possible += head.dropped.possible;
    all.certified += head.dropped.certified;
  }
  return all;
}

Result<ReachedCase> reach_coverage(const Case& c, const ReachOptions& options) {
  KV_ASSIGN_OR_RETURN(Timeline timeline, Timeline::create(c));
  Search search(options);
  KV_ASSIGN_OR_RETURN(bool complete, search.look_at(c));
  const Case wide = with_all_rows(c, std::move(timeline));
  if (!complete && wide != c) {
    KV_ASSIGN_OR_RETURN(complete, search.look_at(wide));
  }
  const bool may_redraw = c.data.overrides.empty() && c.data.tensors_file.empty();
  for (const Design design : kDesigns) {
    for (uint64_t i = 0; i < options.seeds && may_redraw; ++i) {
      for (const Case* rows : {&c, &wide}) {
        if (complete || (rows == &wide && wide == c)) continue;
        Case candidate = *rows;
        candidate.data.design = design;
        candidate.data.seed = c.data.seed + i;
        candidate.data.digest.reset();
        KV_ASSIGN_OR_RETURN(complete, search.look_at(std::move(candidate)));
      }
    }
  }
  return search.take();
}

}  // namespace kv
