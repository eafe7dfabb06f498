// Purpose: one campaign against one plugin, in a process of its own: does it find anything?
// Contract: runs `kverify check --json` with the seed and the budget and waits for it; it ends with
// its first finding unless all are wanted. Then cases of kernels run once, in one process
// (attribution.h), and histories go on. What it found is the campaign's own; seconds are processor
// time of all its processes, so that a loaded machine changes nothing.
// Example:  const Trial trial = run_trial({.plugin = path, .seed = 1});
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/core/result.h"

namespace kv {

struct TrialOptions {
  std::string executable = "/proc/self/exe";  // a kverify
  std::string plugin, corpus, folder;         // folder: for its files; must exist
  bool is_engine = false;                     // random histories of an engine, no cases of kernels
  bool all = false;                           // go on behind the first finding
  uint64_t seed = 0;
  uint64_t cases = 1000;
  double seconds = 120;                       // of processor time
  std::vector<std::string> environment = {};  // "NAME=value", besides its own
};

enum class TrialEnd : uint8_t { kKilled, kSurvived, kBroken };

struct Trial {
  TrialEnd end = TrialEnd::kBroken;
  std::string killer;  // "interval/output-value", "metamorphic/relation:alone"; why, when broken
  std::string message;
  uint64_t cases = 0;  // until it was found, or all
  double seconds = 0;
  std::map<std::string, uint64_t> killers;  // of all findings, when all were wanted
};

Trial run_trial(const TrialOptions& options);

}  // namespace kv
