// Purpose: from a wrong value to the name of the fault.
// Contract: keeps every hypothesis of the catalogue whose admissible interval contains all of the
// observed output of the failing step, in each of its rows. Further cases of the same kind are
// drawn and run until one name is left and one of them has confirmed it; one that fails in the same
// way with the same kernel variant strikes out what does not contain its output. A hypothesis is
// struck out by an observation only, never by its neighbours, and a case that would strike out all
// is ignored (the fault may depend on something else in it): where more of those that fail are such
// than are not, the first was met by chance, and the fault is unknown. What cannot be told apart is
// reported as a set, nothing as unknown.
//  - Members of a family, which differ in a size alone, are one name with all sizes that remain
//    ("hidden-tile-nan:16,32").
//  - What was fitted to the first case is no explanation before another one confirms it.
//  - Where a row is NaN and a hypothesis makes it so, those that merely read a NaN there stay in
//    the set.
// Example: explain(c, observe, {}).value().sentence
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/core/result.h"
#include "harness/judge/verdict.h"
#include "harness/run/observation.h"

namespace kv {

/// Runs a case in a fresh process.
using Observe = std::function<Result<Observation>(const Case&)>;

struct ExplainLimits {
  uint32_t cases_max = 16;  // further ones
  uint32_t rows_max = 512;  // of each step
};

struct Named {
  std::string name, sentence;
  bool operator==(const Named&) const = default;
};

struct Explanation {
  Verdict verdict;
  bool numeric = false;     // a wrong value; other failures are named by their verdict
  uint64_t hypotheses = 0;  // that were tried
  uint32_t cases = 0;       // further ones that helped to decide
  /// Further ones that fail, of which something that remained contains all, and those of which
  /// nothing does.
  uint32_t confirmed = 0, contradicted = 0;
  std::vector<Named> remain;  // none: unknown
  /// What contains the case, but not most of the further ones that fail: no explanation.
  std::vector<Named> by_chance;
  std::string sentence;
};

/// The case must fail; one that does not is bad input. One that no reading holds, or whose honest
/// reading contradicts the judge, is unsupported (trust.h).
Result<Explanation> explain(const Case& c, const Observe& observe, const ExplainLimits& limits);

/// The sentence of a failure that no value shows.
std::string named_by_verdict(const Verdict& verdict);

}  // namespace kv
