// Purpose: what a campaign must have met to say anything: conditions, and pairs of conditions.
// Contract: the list is declared here. Conditions of one axis (dtype, causality, design, ...)
// exclude each other; every other pair is required, except those that kImpossible in must_hit.cpp
// names with its reason. A pure function of the cases added; a case counts once for each condition.
// Example:  MustHit met; met.add(features_of(c)); for (const std::string& m : met.missing()) ...
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/case/features.h"

namespace kv {

struct Condition {
  Feature feature;
  uint8_t axis;  // 0: excludes nothing
};

std::span<const Condition> conditions();

inline constexpr size_t kConditionsMax = 128;
using ConditionSet = std::bitset<kConditionsMax>;  // by place in conditions()

class MustHit {
 public:
  MustHit();
  /// Pairs (and conditions) met for the first time.
  size_t add(const FeatureSet& had);
  /// add() would return this.
  size_t gain(const FeatureSet& had) const;

  uint64_t hits(size_t condition) const { return count_[condition * size_ + condition]; }
  uint64_t hits(size_t a, size_t b) const { return count_[a * size_ + b]; }
  size_t required() const;  // conditions and pairs
  size_t met() const;
  /// "empty_row", "gqa + window_left"; conditions first, in the order of the list.
  std::vector<std::string> missing() const;
  MustHit& operator+=(const MustHit& other);

 private:
  size_t size_;
  std::vector<uint64_t> count_;     // [size][size], the upper triangle
  std::vector<ConditionSet> open_;  // [a]: the b >= a that are required with a and not yet met
};

}  // namespace kv
