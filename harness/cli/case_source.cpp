#include "harness/cli/case_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/certify/corpus.h"
#include "harness/certify/histories.h"
#include "harness/gen/cover.h"
#include "harness/gen/small_cases.h"
#include "harness/relation/draw_related.h"

namespace kv::cli {
namespace {

/// Shorter runs do not hold the array, whose search costs a quarter of a second.
constexpr uint64_t kCoverWorthIt = 80;
/// So many files come between a file and itself with a relation: its run has ended by then, and
/// need not be made again.
constexpr size_t kRelatedLag = 1;

}  // namespace

Result<std::optional<SourcedCase>> CaseSource::next() {
  if (options_.exhaustive) return next_small();
  if (related_.size() > kRelatedLag || (file_ == options_.files.size() && !related_.empty())) {
    SourcedCase related{std::move(related_.front()), ""};
    related_.pop_front();
    return std::optional(std::move(related));
  }
  while (file_ < options_.files.size()) {
    const size_t number = file_++;
    const std::string& path = options_.files[number];
    KV_ASSIGN_OR_RETURN(Case c, load_checked_case(path));
    if (c.engine.has_value() != options_.engine) continue;
    Case related = c;
    if (!c.engine && c.exec.relation.empty() &&
        relate(related, options_.seed + number, options_.seed))
      related_.push_back(std::move(related));
    return std::optional(SourcedCase{std::move(c), path});
  }
  const bool late = options_.is_late && options_.is_late();
  const bool enough = drawn_ >= options_.drawn_max && again_.empty();
  if (enough || late) return std::optional<SourcedCase>{};
  if (options_.engine) {
    return std::optional(
        SourcedCase{draw_engine_case(options_.seed, drawn_++, options_.drawing.offered), ""});
  }
  if (!looked_for_cover_) find_cover();
  return std::optional(SourcedCase{draw_next(), ""});
}

std::optional<SourcedCase> CaseSource::next_small() {
  const bool late = options_.is_late && options_.is_late();
  while (more_small_ && drawn_ < options_.drawn_max && !late) {
    Case c = draw_small(small_);
    more_small_ = small_.next();
    const uint64_t number = number_++;
    if (number % options_.shards != options_.shard) continue;
    ++drawn_;
    c.name = fmt::format("small case {}", number);
    return SourcedCase{std::move(c), ""};
  }
  return std::nullopt;
}

/// A case that forces a variant is mostly refused, and those of the array are to be judged.
DrawOptions CaseSource::unforced() const {
  DrawOptions drawing = options_.drawing;
  drawing.variants.clear();
  return drawing;
}

void CaseSource::find_cover() {
  looked_for_cover_ = true;
  if (options_.drawn_max < kCoverWorthIt) return;
  cover_ = covering_array(options_.seed, unforced());
  if (cover_.size() > options_.drawn_max) cover_.clear();
  in_cover_ = {cover_.begin(), cover_.end()};
}

size_t CaseSource::cover_again(const MustHit& met) {
  if (!covered() || met.met() == met.required()) return 0;
  std::set<uint64_t> ran = in_cover_;
  for (uint64_t i = 0; i < number_; ++i) ran.insert(i);
  again_ = covering_array(options_.seed, unforced(), &met, ran);
  std::reverse(again_.begin(), again_.end());
  in_cover_.insert(again_.begin(), again_.end());
  return again_.size();
}

/// Which case comes next, and whether it is one of the array's.
uint64_t CaseSource::next_number(bool& covering) {
  covering = drawn_ < cover_.size();
  if (covering) return cover_[drawn_];
  if (!again_.empty()) {
    covering = true;
    const uint64_t number = again_.back();
    again_.pop_back();
    return number;
  }
  while (in_cover_.contains(number_)) ++number_;
  return number_++;
}

Case CaseSource::draw_next() {
  bool covering = false;
  const uint64_t number = next_number(covering);
  ++drawn_;
  PhiloxSource choices(options_.seed, number);
  Case c = draw_related(choices, covering ? unforced() : options_.drawing);
  c.name = fmt::format("seed {} case {}", options_.seed, number);
  return c;
}

}  // namespace kv::cli
