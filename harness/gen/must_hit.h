// Purpose: what a campaign must have met to say anything: conditions, and pairs of conditions.
// Contract: the conditions are the features that feature_table.h asks for. Those of one choice
// (dtype, causality, design, ...) exclude each other; every other pair is required, except those
// that kImpossible in must_hit.cpp names with its reason, and except what the plugin does not offer
// and what needs it: that is excused, by name. A pure function of the cases added; a case counts
// once for each condition.
// Example:  MustHit met(offered); met.add(features_of(c)); for (const auto& m : met.missing()) ...
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/case/offers.h"

namespace kv {

std::span<const Feature> conditions();

inline constexpr size_t kConditionsMax = 128;
using ConditionSet = std::bitset<kConditionsMax>;  // by place in conditions()

class MustHit {
 public:
  explicit MustHit(const OfferSet& offered = OfferSet::all());
  /// Pairs (and conditions) met for the first time.
  size_t add(const FeatureSet& had);
  /// add() would return this.
  size_t gain(const FeatureSet& had) const;
  /// What the plugin refused in its own words, case by case, is not missing; but for a condition
  /// that it said it offers: of those, one case at least must have been judged.
  void excuse(const MustHit& refused);

  uint64_t hits(size_t condition) const { return count_[condition * size_ + condition]; }
  uint64_t hits(size_t a, size_t b) const { return count_[a * size_ + b]; }
  size_t required() const;  // conditions and pairs
  size_t met() const;
  /// "empty_row", "gqa + window_left"; conditions first, in the order of the list.
  std::vector<std::string> missing() const;
  /// Conditions that the plugin does not offer, in the order of the list.
  std::vector<std::string> excused() const;

 private:
  size_t size_;
  ConditionSet excused_;
  std::vector<uint64_t> count_;         // [size][size], the upper triangle
  std::vector<ConditionSet> required_;  // [a]: the b >= a that are required with a
  std::vector<ConditionSet> open_;      // those of them that are not yet met
};

}  // namespace kv
