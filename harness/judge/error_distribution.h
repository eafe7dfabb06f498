// Purpose: how the errors of many elements lie inside their bounds: what a build's arithmetic looks
// like before anything fails.
// Contract: counts of |error| / bound in buckets of an eighth of an octave, from 2^-20 to 2^10;
// smaller ones count as zero, larger ones and those that are no number as infinite. A quantile is
// the upper edge of its bucket: at most 13 % too large, the same on every machine. `largest` is
// exact.
// Example: ErrorDistribution d; d.add(0.3); d.quantile(0.99);
#pragma once

#include <array>
#include <cstdint>

namespace kv {

class ErrorDistribution {
 public:
  void add(double ratio);
  void merge(const ErrorDistribution& other);

  uint64_t count() const { return count_; }
  /// Elements that are the correctly rounded value, or as good as it.
  uint64_t exact() const { return buckets_[0]; }
  double largest() const { return largest_; }
  /// The smallest edge that a share of at least `share` (0..1) does not exceed; 0 of nothing.
  double quantile(double share) const;

 private:
  static constexpr int kOctaveFirst = -20, kOctaves = 30, kParts = 8;
  /// 0: zero; then the octaves; the last: infinite.
  std::array<uint64_t, kOctaves* kParts + 2> buckets_ = {};
  uint64_t count_ = 0;
  double largest_ = 0;
};

}  // namespace kv
