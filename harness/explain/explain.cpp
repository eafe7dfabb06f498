#include "harness/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "harness/explain/catalogue.h"
#include "harness/explain/stored_faults.h"
#include "harness/explain/trust.h"
#include "harness/explain/vary.h"
#include "harness/judge/judge.h"

namespace kv {
namespace {

constexpr std::string_view kValueClasses[] = {
    "output-value", "output-nan", "output-inf",       "lse-value",     "lse-nan",
    "lse-inf",      "lse-base",   "empty-row-output", "empty-row-lse", "profile-value"};
constexpr size_t kSetMax = 6;  // a larger set names nothing
// Says what is wrong, but not why: named only when nothing else is left.
constexpr std::string_view kLastResort = "lse-wrong-only";

bool is_value_failure(const Verdict& v) {
  return v.outcome == Outcome::kFail && v.divergence &&
         std::find(std::begin(kValueClasses), std::end(kValueClasses), v.failure_class) !=
             std::end(kValueClasses);
}

// A failing step with everything that was seen of it. The case must stay where it is.
struct Evidence {
  Case c;
  Observation observation;
  Verdict verdict;
  std::unique_ptr<Scene> scene;
  std::string defect;          // of the honest reading, as the judge has it
  std::optional<RowAt> wrong;  // the first row that contradicts the honest reading
};

Result<std::unique_ptr<Evidence>> gather(const Case& c, const Observe& observe) {
  auto e = std::make_unique<Evidence>();
  e->c = c;
  KV_ASSIGN_OR_RETURN(e->observation, observe(c));
  e->verdict = judge_observation(e->c, e->observation);
  if (!is_value_failure(e->verdict)) return e;
  const uint32_t op = e->verdict.divergence->op_index;
  e->scene = std::make_unique<Scene>(e->c, e->observation, op);
  if (!e->scene->has_values()) return e;
  e->defect = honest_defect(e->c, e->observation, op, *e->scene);
  for (const RowAt& at : e->scene->rows()) {
    if (e->scene->contains(at, e->scene->honest(at))) continue;
    e->wrong = at;
    break;
  }
  return e;
}

// What fails in a cascade mostly fails without one, too: there hypotheses read all that was seen.
Result<std::unique_ptr<Evidence>> gather_without_cascade(const Case& c, const Observe& observe) {
  KV_ASSIGN_OR_RETURN(auto e, gather(c, observe));
  if (e->defect.empty() || c.exec.cascade_slots == 0) return e;
  Case alone = c;
  alone.exec.cascade_slots = 0;
  KV_ASSIGN_OR_RETURN(auto without, gather(alone, observe));
  if (without->wrong && without->defect.empty()) return without;
  return unsupported(
      "exec.cascade_slots: what fails is a part of a cascade or its merge, which no hypothesis "
      "reads, and the step without a cascade does not fail by a value: " +
      e->verdict.message);
}

// The rows that are looked at: all of them, or as many as the limit allows, evenly taken, and one
// that is wrong.
std::vector<RowAt> rows_of(const Evidence& e, uint32_t most) {
  const std::vector<RowAt>& all = e.scene->rows();
  const size_t stride = (all.size() + most - 1) / std::max(most, 1u);
  std::vector<RowAt> rows;
  for (size_t i = 0; i < all.size(); i += std::max<size_t>(stride, 1)) rows.push_back(all[i]);
  if (std::find(rows.begin(), rows.end(), *e.wrong) == rows.end()) rows.push_back(*e.wrong);
  return rows;
}

/// Does the reading say more of a row that contradicts the honest one than that anything may be? Of
/// an LSE that it leaves open, beside an O that is right, it says nothing, and of a NaN that it
/// reads somewhere every place that holds one says as much.
bool speaks_of(const Scene& scene, const RowAt& at, const Reading& honest, const Reading& reading) {
  if (!scene.is_finite(reading)) return false;
  if (!reading.lse_open) return true;
  Reading output_alone = honest;
  output_alone.lse_open = true;
  return !scene.contains(at, output_alone);
}

// Every row, and at least one of them read otherwise: what changes nothing explains nothing.
bool contains_all(const Scene& scene, const std::vector<RowAt>& rows, const Hypothesis& h) {
  bool changes = false, speaks = h.name == kLastResort;
  for (const RowAt& at : rows) {
    const Reading honest = scene.honest(at);
    Reading reading = honest;
    h.change(scene, at, reading);
    changes = changes || !(reading == honest);
    if (!scene.contains(at, reading)) return false;
    if (!speaks && !scene.contains(at, honest)) speaks = speaks_of(scene, at, honest, reading);
  }
  return changes && speaks;
}

std::vector<Hypothesis> standing(const Evidence& e, std::vector<Hypothesis> from,
                                 const ExplainLimits& limits) {
  const Scene& scene = *e.scene;
  // Rows that contradict the contract first: they strike out most.
  std::vector<RowAt> rows = rows_of(e, limits.rows_max);
  std::stable_partition(rows.begin(), rows.end(),
                        [&](const RowAt& at) { return !scene.contains(at, scene.honest(at)); });
  std::erase_if(from, [&](const Hypothesis& h) { return !contains_all(scene, rows, h); });
  return from;
}

// Members of families are numbered by the scene: only those that exist in the new one are tried.
std::vector<Hypothesis> narrowed(const std::vector<Hypothesis>& remain, const Evidence& e,
                                 const ExplainLimits& limits) {
  const std::vector<Hypothesis> there = hypotheses(*e.scene);
  std::vector<Hypothesis> known, others;
  for (const Hypothesis& h : remain) {
    const auto found = std::find_if(there.begin(), there.end(),
                                    [&](const Hypothesis& o) { return o.name == h.name; });
    (found != there.end() ? known : others).push_back(h);
  }
  std::vector<Hypothesis> left = standing(e, known, limits);
  left.insert(left.end(), others.begin(), others.end());
  return left;
}

Result<void> discriminate(const Evidence& first, const Observe& observe,
                          const ExplainLimits& limits, std::vector<Hypothesis>& remain,
                          uint32_t& cases) {
  for (uint32_t i = 0; i < limits.cases_max && remain.size() > 1; ++i) {
    const std::optional<Case> c = varied(first.c, i);
    if (!c) continue;
    KV_ASSIGN_OR_RETURN(const auto e, gather(*c, observe));
    if (!e->wrong || !e->defect.empty()) continue;
    if (e->scene->variant() != first.scene->variant()) continue;
    std::vector<Hypothesis> left = narrowed(remain, *e, limits);
    if (left.empty() || left.size() == remain.size()) continue;
    remain = std::move(left);
    ++cases;
  }
  return {};
}

/// A cache that does not hold what append was given, where the plugin rotates or quantises it.
bool is_stored_failure(const Verdict& v) {
  return v.outcome == Outcome::kFail && v.stage == Stage::kProvenance && v.divergence;
}

void explain_stored(const Case& c, const Observation& seen, Explanation& e) {
  const StoredFaults faults = stored_faults(c, seen, e.verdict.divergence->op_index);
  e.hypotheses = faults.hypotheses;
  for (const StoredFaults::Fault& fault : faults.remain)
    e.remain.push_back({fault.name, fault.sentence});
}

std::string stored_sentence_of(const Explanation& e) {
  std::string text = "The cache holds what an append leaves when " + e.remain[0].sentence;
  for (size_t i = 1; i < e.remain.size(); ++i) text += "; or when " + e.remain[i].sentence;
  return text + ".";
}

std::string sentence_of(const Explanation& e) {
  if (!e.numeric && !e.remain.empty()) return stored_sentence_of(e);
  if (!e.numeric) return named_by_verdict(e.verdict);
  if (e.hypotheses == 0) {
    return "The fault is not known: every row lies within the bounds that hold for any order of "
           "arithmetic, so no hypothesis can tell why. " +
           e.verdict.message;
  }
  if (e.remain.empty()) {
    return fmt::format(
        "The fault is not known: none of {} hypotheses contains all of the observed output.",
        e.hypotheses);
  }
  if (e.remain.size() > kSetMax) {
    return fmt::format(
        "The fault is not known: {} of {} hypotheses contain all of the observed output, and no "
        "case that was tried tells them apart. Minimise the case, or allow more cases.",
        e.remain.size(), e.hypotheses);
  }
  std::string text = "The output is what attention gives when " + e.remain[0].sentence;
  for (size_t i = 1; i < e.remain.size(); ++i) text += "; or when " + e.remain[i].sentence;
  return text + (e.remain.size() > 1 ? "; no case that was tried tells these apart." : ".");
}

}  // namespace

Result<Explanation> explain(const Case& c, const Observe& observe, const ExplainLimits& limits) {
  KV_RETURN_IF_ERROR(check_modelled(c));
  KV_ASSIGN_OR_RETURN(const auto evidence, gather_without_cascade(c, observe));
  Explanation e;
  e.verdict = evidence->verdict;
  if (e.verdict.outcome != Outcome::kFail && e.verdict.outcome != Outcome::kNondeterministic) {
    return bad_input("expected a case that fails, got one that does not" +
                     (e.verdict.message.empty() ? "" : ": " + e.verdict.message));
  }
  e.numeric = is_value_failure(e.verdict) && evidence->scene->has_values();
  if (is_stored_failure(e.verdict)) explain_stored(evidence->c, evidence->observation, e);
  if (!evidence->defect.empty()) {
    return unsupported(
        "the reading that hypotheses start from contradicts the judge, so that no answer could be "
        "trusted: " +
        evidence->defect);
  }
  if (e.numeric && evidence->wrong) {
    std::vector<Hypothesis> all = hypotheses(*evidence->scene);
    e.hypotheses = all.size();
    std::vector<Hypothesis> remain = standing(*evidence, std::move(all), limits);
    KV_RETURN_IF_ERROR(discriminate(*evidence, observe, limits, remain, e.cases));
    if (remain.size() > 1) {
      std::erase_if(remain, [](const Hypothesis& h) { return h.name == kLastResort; });
    }
    for (const Hypothesis& h : remain) e.remain.push_back({h.name, h.sentence});
  }
  e.sentence = sentence_of(e);
  return e;
}

std::string named_by_verdict(const Verdict& verdict) {
  return "This failure is named by its verdict, not by a value: " + verdict.message;
}

}  // namespace kv
