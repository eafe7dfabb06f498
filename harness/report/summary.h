// Purpose: the sum of a run of many cases.
// Contract: add() every case once, with its verdict. Counts are taken over cases in any order, so
// the summary of the same cases is the same. exit_code() follows exit_code.h; a run in which
// nothing was judged is vacuous, and so is a campaign of at least kCampaignCases cases that judged
// some but never met a required feature; and one that ran the covering array and never met a
// condition of must_hit.h or a pair of them, or whose cases the plugin mostly refused. What the
// plugin does not offer is excused, by name; what it refused case by case is told, and is not
// missing, unless it is a condition that it said it offers.
// Example: RunSummary s(hello.offered); s.add(c, verdict); puts(summary_text(s).c_str());
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/case/features.h"
#include "harness/gen/must_hit.h"
#include "harness/judge/verdict.h"
#include "harness/report/exit_code.h"

namespace kv {

struct RunSummary {
  static constexpr uint64_t kCampaignCases = 200;

  explicit RunSummary(const OfferSet& offers = OfferSet::all())
      : offered(offers), must_hit(offers), refused(offers) {}

  OfferSet offered;  // by the plugin
  uint64_t cases = 0;
  std::map<Outcome, uint64_t> outcomes;
  std::map<std::string, uint64_t> failure_classes, variants, unsupported_reasons;
  FeatureSet features;           // judged cases that had each feature
  MustHit must_hit;              // over the judged cases
  MustHit refused;               // over the unsupported ones
  bool is_random = true;         // else what a random campaign must meet is not asked for
  bool must_hit_is_due = false;  // the covering array ran
  bool histories = false;        // of engines: features and conditions are those of attention calls
  VerdictStats stats;            // sums; the maximum of error_bound_ratio_max

  void add(const Case& c, const Verdict& verdict);
  uint64_t count(Outcome outcome) const;
  uint64_t judged() const { return count(Outcome::kPass) + count(Outcome::kFail); }
  /// Features that every campaign must meet, and that no judged case of this one had.
  std::vector<std::string> missing_features() const;
  /// must_hit, where what the plugin refused is excused.
  MustHit met_or_refused() const;
  /// What of it is missing: this campaign says too little.
  std::vector<std::string> never_met() const { return met_or_refused().missing(); }
  /// The covering array ran, and the plugin refused more cases than were judged.
  bool mostly_refused() const;
  ExitCode exit_code() const;
};

/// Between which shares the true one lies, when `part` of `whole` failed: Wilson's score interval,
/// 99 %.
struct ShareInterval {
  double low = 0, high = 1;
};
ShareInterval share_interval(uint64_t part, uint64_t whole);

/// For a person: what ran, what it had in it, what is missing.
std::string summary_text(const RunSummary& summary);
nlohmann::ordered_json summary_json(const RunSummary& summary);

}  // namespace kv
