// Purpose: one campaign against one plugin, in a process of its own: does it find anything?
// Contract: runs `kverify check --first --json` with the seed and the budget and waits for it. What
// it found is the campaign's own; seconds are processor time of all its processes, and are never
// compared.
// Example:  const Trial trial = run_trial({.plugin = path, .seed = 1});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/core/result.h"

namespace kv {

struct TrialOptions {
  std::string executable = "/proc/self/exe";  // a kverify
  std::string plugin, corpus, folder;         // folder: for its files; must exist
  uint64_t seed = 0;
  uint64_t cases = 1000;
  double seconds = 120;                       // of wall time
  std::vector<std::string> environment = {};  // "NAME=value", besides its own
};

enum class TrialEnd : uint8_t { kKilled, kSurvived, kBroken };

struct Trial {
  TrialEnd end = TrialEnd::kBroken;
  std::string killer;  // "interval/output-value", "metamorphic/relation:alone"; why, when broken
  std::string message;
  uint64_t cases = 0;  // until it was found
  double seconds = 0;
};

Trial run_trial(const TrialOptions& options);

}  // namespace kv
