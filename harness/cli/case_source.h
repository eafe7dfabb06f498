// Purpose: the cases of a campaign, one after another: the corpus, each file soon followed by
// itself with a relation (the seed says which), then drawn ones, the covering array first when
// drawn_max holds it. Contract: files of the other level are left out. Drawn case number i is a
// pure function of (seed, i, drawing options), whatever was asked for before; those of the covering
// array force no variant, for they are to be judged. Small cases have the numbers that
// gen/small_cases.h gives them. Example: CaseSource source({.files = corpus_files("corpus"), .seed
// = 1, .drawn_max = 500});
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/core/result.h"
#include "harness/gen/draw.h"
#include "harness/gen/must_hit.h"
#include "harness/gen/odometer.h"

namespace kv::cli {

struct SourceOptions {
  std::vector<std::string> files;
  uint64_t seed = 0;
  uint64_t drawn_max = 0;
  std::function<bool()> is_late;  // draws nothing once this is true; none: never
  DrawOptions drawing;
  bool exhaustive = false;         // instead: all small cases, without the corpus
  uint64_t shard = 0, shards = 1;  // of the small cases: those whose number is shard modulo shards
  bool engine = false;             // histories, for the engine level; else attention calls
};

struct SourcedCase {
  Case c;
  std::string path;  // "" when drawn
};

class CaseSource {
 public:
  explicit CaseSource(SourceOptions options) : options_(std::move(options)) {}
  /// Takes effect for the cases drawn from now on.
  void set_drawing(DrawOptions drawing) { options_.drawing = std::move(drawing); }

  /// The next case, or nothing when there are no more.
  Result<std::optional<SourcedCase>> next();
  uint64_t drawn() const { return drawn_; }
  /// After the last case: draws those that have what the array had in vain, because a verdict about
  /// it said nothing. How many there are; 0 without an array. They are beyond drawn_max.
  size_t cover_again(const MustHit& met);
  /// There is a covering array, and all of it was drawn.
  bool covered() const { return !cover_.empty() && drawn_ >= cover_.size(); }

 private:
  DrawOptions unforced() const;
  void find_cover();
  uint64_t next_number(bool& covering);
  Case draw_next();
  std::optional<SourcedCase> next_small();

  SourceOptions options_;
  size_t file_ = 0;
  std::deque<Case> related_;  // files that are still to come with a relation
  uint64_t drawn_ = 0;
  bool looked_for_cover_ = false;
  std::vector<uint64_t> cover_;  // the numbers of its cases; empty: the run is too short for it
  std::set<uint64_t> in_cover_;
  std::vector<uint64_t> again_;  // numbers of cases that complete it, last first
  uint64_t number_ = 0;          // of the next case outside of it, or of the next small case
  Odometer small_;
  bool more_small_ = true;
};

}  // namespace kv::cli
