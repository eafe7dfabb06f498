#include "harness/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/report/must_hit_report.h"
#include "harness/report/words.h"

namespace kv {
namespace {

constexpr Outcome kOutcomes[] = {
    Outcome::kPass,    Outcome::kFail,        Outcome::kNondeterministic,
    Outcome::kVacuous, Outcome::kUnsupported, Outcome::kError};
constexpr size_t kReasonsMax = 50;  // distinct reasons kept; a hostile plugin may invent many

void add_stats(VerdictStats& sum, const VerdictStats& s) {
  sum.rows_judged += s.rows_judged;
  sum.rows_empty += s.rows_empty;
  sum.rows_pad += s.rows_pad;
  sum.elements_judged += s.elements_judged;
  sum.slots_judged += s.slots_judged;
  sum.rows_vacuous += s.rows_vacuous;
  sum.merges_vacuous += s.merges_vacuous;
  sum.escalated += s.escalated;
  sum.findings_suppressed += s.findings_suppressed;
  sum.error_bound_ratio_max = std::max(sum.error_bound_ratio_max, s.error_bound_ratio_max);
}

void count_reason(std::map<std::string, uint64_t>& reasons, const std::string& reason) {
  const bool known = reasons.contains(reason);
  ++reasons[known || reasons.size() < kReasonsMax ? reason : "other"];
}

std::string counts_text(const std::map<std::string, uint64_t>& counts) {
  std::string out;
  for (const auto& [name, count] : counts) out += fmt::format("    {:>8}  {}\n", count, name);
  return out;
}

}  // namespace

void RunSummary::add(const Case& c, const Verdict& verdict) {
  ++cases;
  ++outcomes[verdict.outcome];
  if (verdict.outcome == Outcome::kFail || verdict.outcome == Outcome::kNondeterministic)
    count_reason(failure_classes, verdict.failure_class);
  if (verdict.outcome == Outcome::kUnsupported) count_reason(unsupported_reasons, verdict.message);
  add_stats(stats, verdict.stats);
  const FeatureSet had = features_of(c);
  if (verdict.outcome == Outcome::kUnsupported) refused.add(had);
  if (verdict.outcome == Outcome::kNondeterministic) must_hit.add(had);
  if (verdict.outcome != Outcome::kPass && verdict.outcome != Outcome::kFail) return;
  if (!verdict.variant.empty()) count_reason(variants, verdict.variant);
  must_hit.add(had);
  for (size_t i = 0; i < kFeatureCount; ++i) features.count[i] += had.count[i] > 0;
}

uint64_t RunSummary::count(Outcome outcome) const {
  const auto found = outcomes.find(outcome);
  return found == outcomes.end() ? 0 : found->second;
}

std::vector<std::string> RunSummary::missing_features() const {
  std::vector<std::string> missing;
  if (!is_random || histories || judged() < kCampaignCases) return missing;
  for (size_t i = 0; i < kFeatureCount; ++i) {
    const bool is_due = row_of(Feature(i)).in_every_campaign && can_be_met(offered, Feature(i));
    if (is_due && !features.has(Feature(i))) missing.emplace_back(feature_name(Feature(i)));
  }
  return missing;
}

MustHit RunSummary::met_or_refused() const {
  MustHit all = must_hit;
  all.excuse(refused);
  return all;
}

bool RunSummary::mostly_refused() const {
  return must_hit_is_due && count(Outcome::kUnsupported) > judged();
}

ExitCode RunSummary::exit_code() const {
  ExitCode code = ExitCode::kPass;
  if (count(Outcome::kError) > 0) code = worst(code, ExitCode::kEnvironment);
  if (count(Outcome::kFail) > 0) code = worst(code, ExitCode::kFailed);
  if (count(Outcome::kNondeterministic) > 0) code = worst(code, ExitCode::kNondeterministic);
  if (!missing_features().empty()) code = worst(code, ExitCode::kVacuous);
  if (must_hit_is_due && judged() > 0 && (!never_met().empty() || mostly_refused()))
    code = worst(code, ExitCode::kVacuous);
  if (judged() > 0 || code != ExitCode::kPass) return code;
  const bool all_unsupported = cases > 0 && count(Outcome::kUnsupported) == cases;
  return all_unsupported ? ExitCode::kUnsupported : ExitCode::kVacuous;
}

ShareInterval share_interval(uint64_t part, uint64_t whole) {
  if (whole == 0) return {};
  constexpr double kDeviations = 2.576;  // of a normal distribution, for 99 %
  const auto n = static_cast<double>(whole);
  const double p = static_cast<double>(part) / n, z2 = kDeviations * kDeviations / n;
  const double middle = (p + z2 / 2) / (1 + z2);
  const double half = kDeviations * std::sqrt(p * (1 - p) / n + z2 / n / 4) / (1 + z2);
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

std::string summary_text(const RunSummary& s) {
  std::string out = fmt::format("{} cases:", s.cases);
  for (const Outcome outcome : kOutcomes)
    if (s.count(outcome) > 0 || outcome == Outcome::kPass || outcome == Outcome::kFail)
      out += fmt::format(" {} {},", s.count(outcome), outcome_name(outcome));
  out.back() = '\n';
  out += fmt::format(
      "  judged      {} query rows ({} empty, {} PAD, {} vacuous), {} elements, "
      "{} cache slots\n",
      s.stats.rows_judged, s.stats.rows_empty, s.stats.rows_pad, s.stats.rows_vacuous,
      s.stats.elements_judged, s.stats.slots_judged);
  if (s.stats.elements_judged > 0)
    out +=
        fmt::format("  largest     |error| / bound {:.4f}; {} elements needed more than double\n",
                    s.stats.error_bound_ratio_max, s.stats.escalated);
  if (s.stats.findings_suppressed > 0)
    out += fmt::format("  suppressed  {} findings of the device, by --suppress\n",
                       s.stats.findings_suppressed);
  if (s.judged() > 0 && !s.histories) out += features_table(s.features) + must_hit_text(s);
  for (const std::string& feature : s.missing_features())
    out += fmt::format("  never met   {}: this campaign says too little\n", feature);
  if (s.mostly_refused())
    out += fmt::format("  refused     {} of {} cases: this campaign says too little\n",
                       s.count(Outcome::kUnsupported), s.cases);
  if (!s.variants.empty()) out += "  variants that ran\n" + counts_text(s.variants);
  if (const uint64_t failed = s.count(Outcome::kFail); failed > 0) {
    const uint64_t all = failed + s.count(Outcome::kPass);
    const ShareInterval share = share_interval(failed, all);
    out += fmt::format(
        "  rate        {} of {} cases failed: {:.2f} to {:.2f} % of such cases (99 %)\n", failed,
        all, 100 * share.low, 100 * share.high);
  }
  if (!s.failure_classes.empty()) out += "  failures\n" + counts_text(s.failure_classes);
  if (!s.unsupported_reasons.empty()) out += "  unsupported\n" + counts_text(s.unsupported_reasons);
  return out;
}

nlohmann::ordered_json summary_json(const RunSummary& s) {
  nlohmann::ordered_json json;
  json["cases"] = s.cases;
  for (const Outcome outcome : kOutcomes) json[outcome_name(outcome)] = s.count(outcome);
  json["judged"] = {{"rows", s.stats.rows_judged},
                    {"rows_empty", s.stats.rows_empty},
                    {"rows_pad", s.stats.rows_pad},
                    {"rows_vacuous", s.stats.rows_vacuous},
                    {"merges_vacuous", s.stats.merges_vacuous},
                    {"elements", s.stats.elements_judged},
                    {"elements_escalated", s.stats.escalated},
                    {"slots", s.stats.slots_judged},
                    {"findings_suppressed", s.stats.findings_suppressed},
                    {"error_bound_ratio_max", s.stats.error_bound_ratio_max}};
  json["features"] = nlohmann::ordered_json::object();
  for (size_t i = 0; i < kFeatureCount; ++i)
    json["features"][std::string(feature_name(static_cast<Feature>(i)))] = s.features.count[i];
  json["must_hit"] = must_hit_json(s);
  json["features_missing"] = s.missing_features();
  json["variants"] = s.variants;
  json["failure_classes"] = s.failure_classes;
  json["unsupported_reasons"] = s.unsupported_reasons;
  return json;
}

}  // namespace kv
