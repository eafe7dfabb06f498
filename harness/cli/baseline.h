// Purpose: the faults that a legacy kernel is known to have, so that a run fails on new ones only.
// Contract: a fault is a fingerprint (harness/judge/fingerprint.h) and what tells it from others of
// the same fingerprint: which known faults would give its output (harness/explain), or, where none
// does, what all of its cases had in them. A finding is known when a line of its fingerprint shares
// an explanation with it; when neither has one, it must have all features of the line. A line
// without more than its fingerprint hides every fault that has it. In the file a fault is a line,
// "values output-value step decode; as alibi-slope-of-kv-head" or "...; if gqa softcap"; empty
// lines and those that begin with # say nothing, any other is bad input. Example:
// KV_ASSIGN_OR_RETURN(const KnownFaults known, read_baseline("known_faults.txt"));
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/core/result.h"

namespace kv::cli {

struct Fault {
  std::string fingerprint;
  std::set<std::string> features;  // of its case; telling_features()
  std::set<std::string> names;     // families of the hypotheses that contain its output
};

/// What of a case may tell one fault from another: what a plugin may refuse, unless the plain case
/// has it.
std::set<std::string> telling_features(const Case& c);

/// "key-dropped" of "key-dropped:3".
std::string hypothesis_family(const std::string& name);

class KnownFaults {
 public:
  bool knows(const Fault& fault) const;
  /// A further finding of a line narrows it to what both have; else it is a new line.
  void add(const Fault& fault);
  size_t size() const;
  /// One line each, in order. Features are told only of faults that enough cases had.
  std::vector<std::string> lines() const;
  /// Nullopt: no such line.
  static std::optional<KnownFaults> parse(const std::string& line);
  KnownFaults& operator+=(const KnownFaults& other);

 private:
  struct Line {
    std::set<std::string> features, names;
    uint64_t findings = 0;
    bool is_coarse = false;  // hides all of its fingerprint
  };
  std::map<std::string, std::vector<Line>> lines_;  // by fingerprint
};

Result<KnownFaults> read_baseline(const std::string& path);
Result<void> write_baseline(const std::string& path, const KnownFaults& faults);

}  // namespace kv::cli
