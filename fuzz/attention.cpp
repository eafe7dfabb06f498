// Fuzz target: one attention step (an append and an attend) on kvattn, judged as `kverify check`
// judges it. Every case is small, so that many run.
#include <fmt/format.h>

#include "fuzz/bench.h"
#include "fuzz/case_target.h"
#include "fuzz/finding.h"
#include "fuzz/guidance.h"
#include "harness/relation/draw_related.h"
#include "harness/report/words.h"

namespace kv::fuzzing {
namespace {

DrawLimits& limits() {
  static DrawLimits limits{.steps = 1,
                           .requests = 2,
                           .slots = 64,
                           .queries = 8,
                           .query_heads = 4,
                           .head_dim = 64,
                           .layers = 1};
  return limits;
}

bool set_limit(std::string_view name, uint32_t value) {
  if (value == 0) return false;
  DrawLimits& l = limits();
  if (name == "steps") return l.steps = value, true;
  if (name == "requests") return l.requests = value, true;
  if (name == "slots") return l.slots = value, true;
  if (name == "queries") return l.queries = value, true;
  if (name == "heads") return l.query_heads = value, true;
  if (name == "head_dim") return l.head_dim = value, true;
  return false;
}

Case draw_small(ChoiceSource& choices) {
  static const DrawOptions options = [] {
    DrawOptions o = drawing();
    o.limits = limits();
    return o;
  }();
  return draw_related(choices, options);
}

/// A case of the corpus may have more steps, but no larger ones.
bool fits(const Case& c) {
  if (c.engine || c.ops.size() > 64 || c.shape.query_heads > 2 * limits().query_heads) return false;
  if (c.shape.head_dim_k > 2 * limits().head_dim || c.shape.layers > 2) return false;
  uint64_t slots = 0;
  for (const Op& operation : c.ops) {
    const auto* step = std::get_if<op::Step>(&operation);
    if (step == nullptr) continue;
    for (const op::StepRow& row : step->rows) {
      slots += uint64_t{row.append} + row.pad_left + row.pad_right;
      if (row.queries > 4 * limits().queries) return false;
    }
  }
  return slots <= 4 * uint64_t{limits().slots};
}

/// As far as it is known before the plugin has planned.
std::vector<Relation> relations_before(const Case& c) {
  return relations_of(c, c.exec.variant, c.exec.split_slots == 0 ? 0 : 1);
}
double novelty(const Case& c) { return novelty_of(relations_before(c)); }

void run(const Case& c) {
  meet(relations_before(c));
  const FuzzRun ran = run_case(c);
  const Verdict& v = ran.verdict;
  note_relations(relations_of(c, v.variant, ran.splits));
  note_ratio(v.stats.error_bound_ratio_max);
  note(static_cast<uint32_t>(v.outcome));
  if (v.outcome == Outcome::kFail || v.outcome == Outcome::kNondeterministic ||
      v.outcome == Outcome::kError) {
    end_with_finding(ran.c,
                     fmt::format("{} {}/{}: {}", v.outcome == Outcome::kError ? "error" : "fail",
                                 stage_name(v.stage), v.failure_class, v.message));
  }
}

}  // namespace

const CaseTarget& case_target() {
  static constexpr CaseTarget target{.open = open_bench,
                                     .set_limit = set_limit,
                                     .draw = draw_small,
                                     .fits = fits,
                                     .run = run,
                                     .novelty = novelty};
  return target;
}

}  // namespace kv::fuzzing
