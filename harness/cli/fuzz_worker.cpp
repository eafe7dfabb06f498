// One worker of a campaign: claims a number, leaves the case in the shared state, runs, records.
#include <unistd.h>

#include "harness/campaign/file_lock.h"
#include "harness/campaign/ledger.h"
#include "harness/campaign/state.h"
#include "harness/case/features.h"
#include "harness/case/json.h"
#include "harness/certify/corpus.h"
#include "harness/certify/examine.h"
#include "harness/certify/histories.h"
#include "harness/certify/interrupt.h"
#include "harness/cli/campaign_folder.h"
#include "harness/cli/commands.h"
#include "harness/cli/findings.h"
#include "harness/judge/fingerprint.h"
#include "harness/relation/draw_related.h"
#include "harness/report/words.h"

namespace kv::cli {
namespace {

class FuzzWorker {
 public:
  FuzzWorker(const FuzzOptions& options, CampaignState state, Ledger ledger)
      : options_(options),
        folder_(options.folder),
        worker_(*options.worker),
        who_({.worker = *options.worker, .workers = options.jobs}),
        state_(std::move(state)),
        ledger_(std::move(ledger)) {}

  Result<ExitCode> run() {
    KV_ASSIGN_OR_RETURN(Examiner examiner, Examiner::start(options_.bench));
    if (options_.level == "engine") offered_ = examiner.history_drawing().offered;
    state_.slot(worker_).ready = static_cast<uint32_t>(getpid());
    while (state_.stop() == 0 && !interrupted()) {
      if (options_.cases && state_.claimed() >= *options_.cases && !state_.is_waited_for(who_)) {
        break;
      }
      KV_RETURN_IF_ERROR(one(examiner));
    }
    return ExitCode::kPass;
  }

 private:
  Case draw_case(uint64_t number, const Examiner& examiner) const {
    if (options_.level == "engine") return draw_engine_case(options_.seed, number, offered_);
    PhiloxSource choices(options_.seed, number);
    return draw_related(choices, examiner.drawing());
  }

  Result<void> one(Examiner& examiner) {
    const uint64_t number = state_.claim(who_);
    Case c = draw_case(number, examiner);
    c.name = "campaign case " + std::to_string(number);
    state_.note_case(worker_, case_to_json(c));
    KV_RETURN_IF_ERROR(examiner.submit(c));
    KV_ASSIGN_OR_RETURN(Examined examined, examiner.next());
    nlohmann::ordered_json line = {{"event", "case"},
                                   {"case", number},
                                   {"outcome", outcome_name(examined.verdict.outcome)},
                                   {"variant", examined.verdict.variant}};
    if (is_finding(examined.verdict)) KV_RETURN_IF_ERROR(keep_finding(examined, line));
    keep_features(c, line);
    KV_RETURN_IF_ERROR(ledger_.add(line));
    state_.release(worker_);
    return {};
  }

  Result<void> keep_finding(Examined& examined, nlohmann::ordered_json& line) {
    line["fingerprint"] = fingerprint_of(examined.c, examined.verdict).text();
    line["history"] = !examined.preceding.empty();
    KV_ASSIGN_OR_RETURN(const std::string path, store_finding(folder_.findings(), examined));
    line["file"] = path.substr(folder_.root.size() + 1);
    ++state_.slot(worker_).findings;
    return {};
  }

  // Pairs of features that this worker has not met before.
  void keep_features(const Case& c, nlohmann::ordered_json& line) {
    const FeatureSet has = features_of(c);
    uint64_t fresh = 0;
    for (size_t a = 0; a < kFeatureCount; ++a) {
      for (size_t b = a; b < kFeatureCount && has.count[a] > 0; ++b) {
        if (has.count[b] > 0 && !met_[a * kFeatureCount + b]) {
          met_[a * kFeatureCount + b] = true;
          ++fresh;
        }
      }
    }
    if (fresh > 0) line["new_feature_pairs"] = fresh;
    state_.slot(worker_).corpus += fresh;
  }

  const FuzzOptions& options_;
  const CampaignFolder folder_;
  const uint32_t worker_;
  const CampaignWorker who_;
  CampaignState state_;
  Ledger ledger_;
  OfferSet offered_;  // by the engine
  std::vector<bool> met_ = std::vector<bool>(kFeatureCount * kFeatureCount);
};

}  // namespace

Result<ExitCode> fuzz_worker(const FuzzOptions& options) {
  const CampaignFolder folder(options.folder);
  // The worker of a supervisor that was killed may still be ending.
  KV_ASSIGN_OR_RETURN(const FileLock lock, FileLock::take(folder.worker_lock(*options.worker),
                                                          std::chrono::seconds(30)));
  KV_ASSIGN_OR_RETURN(CampaignState state, CampaignState::open(folder.state()));
  KV_ASSIGN_OR_RETURN(Ledger ledger, Ledger::open(folder.ledger()));
  return FuzzWorker(options, std::move(state), std::move(ledger)).run();
}

}  // namespace kv::cli
