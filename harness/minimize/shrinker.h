// Purpose: the gate that every candidate of every pass goes through.
// Contract: take(candidate) is true, and the candidate is the new best, when it is lawful (the case
// checker and Timeline accept it), simpler by weight, not tried before, and fails in the same way.
// Once a limit is reached or the caller's hooks gave an error, take() is always false, so that
// every pass ends by itself. Example: Case c = shrinker.best(); c.shape.layers = 1;
// shrinker.take(std::move(c));
#pragma once

#include <optional>
#include <set>

#include "harness/minimize/minimize.h"
#include "harness/minimize/weight.h"

namespace kv {

class Shrinker {
 public:
  Shrinker(const Case& from, const MinimizeHooks& hooks, const MinimizeLimits& limits);

  const Case& best() const { return best_; }
  bool take(Case candidate);
  /// As take(), for the one step that is worth a heavier file: explicit values.
  bool take_heavier(Case candidate);

  bool spent() const;
  uint64_t attempts() const { return attempts_; }
  uint64_t accepted() const { return accepted_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  bool run(Case candidate);

  const MinimizeHooks& hooks_;
  const MinimizeLimits limits_;
  const std::chrono::steady_clock::time_point deadline_;
  Case best_;
  Weight weight_;
  std::set<uint64_t> tried_;  // hashes of the texts of cases
  uint64_t attempts_ = 0, accepted_ = 0;
  std::optional<Error> error_;
};

}  // namespace kv
