// Purpose: what a command does with a finding: store it, tell it, count it.
// Contract: every finding's case is stored; the same fault, as its fingerprint knows it, is told
// once, and how often it came is in the summary. Held against a baseline, faults that it does not
// know are told even where it knows others of the same fingerprint. Where asked, a fault that is
// told comes with a minimised case, in FOLDER/minimized under the name of the finding's own.
// Example: FindingSink sink(options.out, options.bench, output); sink.add(examined);
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/certify/examine.h"
#include "harness/cli/baseline.h"
#include "harness/cli/output.h"
#include "harness/minimize/minimize.h"
#include "harness/report/record.h"

namespace kv::cli {

class FindingSink {
 public:
  /// `folder`: "" to store nothing. `minimizing`: limits for each fault; no attempts, no offer.
  FindingSink(std::string folder, const BenchOptions& bench, const Output& output,
              const MinimizeLimits& minimizing = {.attempts_max = 0})
      : folder_(std::move(folder)), bench_(bench), output_(output), minimizing_(minimizing) {}

  /// From now on faults are told apart as a baseline does (one more run for each finding), and
  /// those that it knows are no news. It must outlive the sink.
  void hold_against(const KnownFaults& baseline) { baseline_ = &baseline; }

  /// `case_path`: where the case came from, "" when it was drawn. Findings only. What needs other
  /// cases before it is stored with them, wherever it came from.
  Result<void> add(Examined examined, const std::string& case_path);

  size_t distinct() const { return told_.size(); }
  size_t total() const { return total_; }
  const nlohmann::ordered_json& json() const { return json_; }
  /// One for each fault that was told.
  const std::vector<Record>& records() const { return records_; }
  /// Those of them that the baseline does not know.
  const std::vector<Record>& news() const { return news_; }
  /// All of them, and those that the baseline does not know; when held against one.
  const KnownFaults& faults() const { return faults_; }
  const KnownFaults& new_faults() const { return new_faults_; }

 private:
  Fault name(const Examined& examined) const;
  /// Whether the baseline knows it.
  bool file(const Fault& fault);
  Result<std::string> offer_minimized(const Examined& examined, const std::string& path) const;

  std::string folder_;
  const BenchOptions& bench_;
  const Output& output_;
  MinimizeLimits minimizing_;
  const KnownFaults* baseline_ = nullptr;
  KnownFaults faults_, new_faults_;
  std::set<std::pair<std::string, bool>> told_;  // fingerprints, and whether it was no news
  std::vector<Record> records_, news_;
  size_t total_ = 0;
  nlohmann::ordered_json json_ = nlohmann::ordered_json::array();
};

/// "kverify replay PATH --device ... --plugin ..."; defaults are left out.
std::string replay_command(const std::string& case_path, const BenchOptions& bench);

}  // namespace kv::cli
