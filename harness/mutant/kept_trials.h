// Purpose: results that survive the death of a campaign: what is known is not run again.
// Contract: a file of JSON lines, one for each trial, appended at once; a line that was cut off is
// skipped. A result counts for the same patch, plugin bytes, kverify, seed and budget only. Broken
// trials are not kept. Safe to call from several threads. Without a path nothing is kept.
// Example:  KV_ASSIGN_OR_RETURN(auto ledger, KeptTrials::open("mutants.jsonl"));
//           if (auto known = ledger->find(key)) return *known;
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "harness/core/result.h"
#include "harness/mutant/trial.h"

namespace kv {

struct TrialKey {
  std::string bug, patch, plugin, kverify;  // a name and three hashes
  uint64_t seed = 0, cases = 0;
  double seconds = 0;  // of processor time, at most
  bool all = false;
  auto operator<=>(const TrialKey&) const = default;
};

class KeptTrials {
 public:
  /// `path` "": keeps nothing.
  static Result<std::unique_ptr<KeptTrials>> open(const std::string& path);
  std::optional<Trial> find(const TrialKey& key) const;
  Result<void> add(const TrialKey& key, const Trial& trial);

 private:
  explicit KeptTrials(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  mutable std::mutex mutex_;
  std::map<TrialKey, Trial> known_;
};

}  // namespace kv
