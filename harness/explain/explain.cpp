#include "harness/explain/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "harness/explain/catalogue.h"
#include "harness/explain/combined.h"
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
// Further cases that must confirm a combination, and none may contradict it.
constexpr uint32_t kCombinedConfirmed = 2;
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

/// A row that is looked at, as the contract has it.
struct Row {
  RowAt at;
  Reading honest;
  bool is_right = false;
  /// Every row of its kind is: rows of one query have kernels of their own, and a fault in one kind
  /// says nothing of the other.
  bool kind_is_right = false;
};

// Rows that contradict the contract first: they strike out most.
std::vector<Row> examined_rows(const Evidence& e, const ExplainLimits& limits) {
  std::vector<Row> rows;
  for (const RowAt& at : rows_of(e, limits.rows_max)) {
    Row row{at, e.scene->honest(at)};
    row.is_right = e.scene->contains(at, row.honest);
    rows.push_back(std::move(row));
  }
  const auto is_single = [&](const Row& row) {
    return e.scene->step().rows[row.at.row].queries == 1;
  };
  for (Row& row : rows) {
    row.kind_is_right = std::none_of(rows.begin(), rows.end(), [&](const Row& other) {
      return !other.is_right && is_single(other) == is_single(row);
    });
  }
  std::stable_partition(rows.begin(), rows.end(), [](const Row& row) { return !row.is_right; });
  return rows;
}

/// Whether a hypothesis holds of all rows, and whether it says anything.
enum class Holds : uint8_t {
  kNot,
  kMutely,  // it reads a NaN where a row is wrong: every place that holds one says as much
  kClearly
};

/// Does the reading say more of a row that contradicts the honest one than that anything may be? Of
/// an LSE that it leaves open, beside an O that is right, it says nothing.
Holds says_of(const Scene& scene, const Row& row, const Reading& reading) {
  if (reading.fate == RowFate::kAnything) return Holds::kNot;
  if (reading.fate != RowFate::kNumbers) return Holds::kClearly;
  if (!scene.is_finite(reading)) return Holds::kMutely;
  if (!reading.lse_open) return Holds::kClearly;
  Reading output_alone = row.honest;
  output_alone.lse_open = true;
  return scene.contains(row.at, output_alone) ? Holds::kNot : Holds::kClearly;
}

// Every row, and at least one of them read otherwise: what changes nothing explains nothing.
Holds holds_of_all(const Scene& scene, const std::vector<Row>& rows, const Hypothesis& h) {
  bool changes = false;
  Holds holds = h.name == kLastResort ? Holds::kClearly : Holds::kNot;
  for (const Row& row : rows) {
    if (row.kind_is_right) continue;
    Reading reading = row.honest;
    h.change(scene, row.at, reading);
    const bool same = reading == row.honest;
    changes = changes || !same;
    if (same ? !row.is_right : !scene.contains(row.at, reading)) return Holds::kNot;
    if (holds != Holds::kClearly && !row.is_right)
      holds = std::max(holds, says_of(scene, row, reading));
  }
  return changes ? holds : Holds::kNot;
}

/// What says nothing of the cause stands only where nothing else does.
void drop_last_resort(std::vector<Hypothesis>& from) {
  const auto tells = [](const Hypothesis& h) { return h.name != kLastResort && !h.fitted; };
  if (std::none_of(from.begin(), from.end(), tells)) return;
  std::erase_if(from, [](const Hypothesis& h) { return h.name == kLastResort; });
}

std::vector<Hypothesis> standing(const Evidence& e, std::vector<Hypothesis> from,
                                 const ExplainLimits& limits) {
  const std::vector<Row> rows = examined_rows(e, limits);
  std::vector<Hypothesis> clear, all;
  for (Hypothesis& h : from) {
    const Holds holds = holds_of_all(*e.scene, rows, h);
    if (holds == Holds::kNot) continue;
    if (holds == Holds::kClearly) clear.push_back(h);
    all.push_back(std::move(h));
  }
  // Mute ones are no explanation, but where there is one they may be it as well.
  std::vector<Hypothesis> left = clear.empty() ? std::move(clear) : std::move(all);
  drop_last_resort(left);
  return left;
}

/// What one hypothesis for some rows alone, or else two at once, make of all rows.
std::vector<Hypothesis> standing_combined(const Evidence& e, const std::vector<Hypothesis>& all,
                                          const ExplainLimits& limits) {
  if (limits.cases_max < kCombinedConfirmed) return {};  // nothing could confirm it
  std::vector<RowAt> wrong;
  for (const Row& row : examined_rows(e, limits))
    if (!row.is_right) wrong.push_back(row.at);
  std::vector<Hypothesis> left = standing(e, limited_candidates(*e.scene, wrong, all), limits);
  if (!left.empty()) return left;
  return standing(e, paired_candidates(*e.scene, wrong.front(), all), limits);
}

/// What further cases that fail say of hypotheses that contain the first one.
struct Trial {
  std::vector<Hypothesis> remain;
  uint32_t narrowed = 0;      // cases that struck something out
  uint32_t confirmed = 0;     // that something contains
  uint32_t contradicted = 0;  // that nothing contains of what could
};

/// What was fitted to the first case has to hold in another one: it is no longer fitted then, and
/// gone where it does not.
void test_fitted(const Evidence& e, const ExplainLimits& limits, std::vector<Hypothesis>& remain) {
  std::erase_if(remain,
                [&](const Hypothesis& h) { return h.fitted && standing(e, {h}, limits).empty(); });
  for (Hypothesis& h : remain) h.fitted = false;
}

bool has_fitted(const std::vector<Hypothesis>& remain) {
  return std::any_of(remain.begin(), remain.end(), [](const Hypothesis& h) { return h.fitted; });
}

// Only those that exist in the new scene are tried, as it has them: with its heads and sizes. A
// number that was fitted stays what it was.
void narrow(const Evidence& e, const ExplainLimits& limits, Trial& trial) {
  const size_t before = trial.remain.size();
  test_fitted(e, limits, trial.remain);
  const std::vector<Hypothesis> there = hypotheses(*e.scene);
  std::vector<Hypothesis> known, others;
  for (Hypothesis& h : trial.remain) {
    const std::optional<Hypothesis> same = found_again(h, there);
    if (!same) {
      others.push_back(std::move(h));
    } else {
      known.push_back(same->fitted ? std::move(h) : *same);
    }
  }
  std::vector<Hypothesis> left = standing(e, known, limits);
  trial.confirmed += !left.empty();
  trial.contradicted += left.empty() && !known.empty();
  if (left.empty() && others.empty()) left = std::move(known);
  left.insert(left.end(), others.begin(), others.end());
  trial.remain = std::move(left);
  trial.narrowed += trial.remain.size() < before;
}

/// A combination fits by chance more easily than one hypothesis does.
bool is_by_chance(const Trial& trial) {
  const bool combined = !trial.remain.empty() && !trial.remain[0].parts.empty();
  if (!combined) return trial.contradicted > trial.confirmed;
  return trial.contradicted > 0 || trial.confirmed < kCombinedConfirmed;
}

/// Whether nothing is gained from another case.
bool is_settled(const Trial& trial) {
  if (trial.remain.empty() || trial.remain[0].name == kLastResort) return true;
  const uint32_t least = trial.remain[0].parts.empty() ? 1 : kCombinedConfirmed;
  return trial.remain.size() == 1 && trial.confirmed >= trial.contradicted + least;
}

Result<Trial> discriminate(const Evidence& first, const Observe& observe,
                           const ExplainLimits& limits, std::vector<Hypothesis> remain) {
  Trial trial{std::move(remain)};
  for (uint32_t i = 0; i < limits.cases_max; ++i) {
    if (is_settled(trial) && !has_fitted(trial.remain)) break;
    const std::optional<Case> c = varied(first.c, i);
    if (!c) continue;
    KV_ASSIGN_OR_RETURN(const auto e, gather(*c, observe));
    if (!e->wrong || !e->defect.empty()) continue;
    if (e->scene->variant() != first.scene->variant()) continue;
    narrow(*e, limits, trial);
  }
  std::erase_if(trial.remain, [](const Hypothesis& h) { return h.fitted; });
  drop_last_resort(trial.remain);
  return trial;
}

/// "16", "16 or 32", "16, 32 or 64".
std::string listed(const std::vector<std::string>& sizes) {
  std::string text = sizes.front();
  for (size_t i = 1; i < sizes.size(); ++i) {
    text += (i + 1 == sizes.size() ? " or " : ", ") + sizes[i];
  }
  return text;
}

/// A family is one fault; its sizes are those that no case has struck out, in their order.
Named named_family(const std::vector<Hypothesis>& remain, const Hypothesis& first) {
  std::vector<std::string> sizes;
  for (const Hypothesis& h : remain) {
    const bool is_new = std::find(sizes.begin(), sizes.end(), h.size) == sizes.end();
    if (h.family == first.family && is_new) sizes.push_back(h.size);
  }
  return {fmt::format("{}:{}", first.family, fmt::join(sizes, ",")),
          fmt::format(fmt::runtime(first.sentence), listed(sizes))};
}

std::vector<Named> named(const std::vector<Hypothesis>& remain) {
  std::vector<Named> names;
  for (const Hypothesis& h : remain) {
    if (h.family.empty()) {
      names.push_back({h.name, h.sentence});
      continue;
    }
    const Named one = named_family(remain, h);
    if (std::find(names.begin(), names.end(), one) == names.end()) names.push_back(one);
  }
  return names;
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
  if (!e.by_chance.empty() && e.contradicted == 0) {
    return fmt::format(
        "The fault is not known: nothing explains it by itself, and that {} is confirmed by {} "
        "further cases that fail, at least {} were expected.",
        e.by_chance[0].sentence, e.confirmed, kCombinedConfirmed);
  }
  if (!e.by_chance.empty()) {
    return fmt::format(
        "The fault is not known: of {} further cases that fail, {} could not be explained as this "
        "one, whose output is what attention gives when {}.",
        e.confirmed + e.contradicted, e.contradicted, e.by_chance[0].sentence);
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
    const std::vector<Hypothesis> all = hypotheses(*evidence->scene);
    e.hypotheses = all.size();
    std::vector<Hypothesis> stand = standing(*evidence, all, limits);
    if (stand.empty()) stand = standing_combined(*evidence, all, limits);
    KV_ASSIGN_OR_RETURN(const Trial trial,
                        discriminate(*evidence, observe, limits, std::move(stand)));
    e.cases = trial.narrowed;
    e.confirmed = trial.confirmed;
    e.contradicted = trial.contradicted;
    e.remain = named(trial.remain);
    const bool is_chance = is_by_chance(trial);
    if (is_chance && !e.remain.empty() && e.remain[0].name != kLastResort) {
      e.by_chance = std::move(e.remain);
      e.remain.clear();
    }
  }
  e.sentence = sentence_of(e);
  return e;
}

std::string named_by_verdict(const Verdict& verdict) {
  return "This failure is named by its verdict, not by a value: " + verdict.message;
}

}  // namespace kv
