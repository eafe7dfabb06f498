#include "harness/judge/error_distribution.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace kv {

void ErrorDistribution::add(double ratio) {
  ++count_;
  if (!(ratio >= 0)) ratio = std::numeric_limits<double>::infinity();
  largest_ = std::max(largest_, ratio);
  // Octave and eighth are the exponent and the first three bits of the mantissa.
  const auto bits = std::bit_cast<uint64_t>(ratio);
  const int64_t part = static_cast<int64_t>(bits >> 49) - (int64_t{1023 + kOctaveFirst} << 3);
  const int64_t last = static_cast<int64_t>(buckets_.size()) - 1;
  ++buckets_[static_cast<size_t>(std::clamp<int64_t>(part + 1, 0, last))];
}

void ErrorDistribution::merge(const ErrorDistribution& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  largest_ = std::max(largest_, other.largest_);
}

double ErrorDistribution::quantile(double share) const {
  const double want = share * static_cast<double>(count_);
  uint64_t below = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    below += buckets_[i];
    if (static_cast<double>(below) < want || below == 0) continue;
    if (i == 0) return 0;
    if (i + 1 == buckets_.size()) return largest_;
    const auto part = static_cast<int>(i - 1);
    const double edge =
        std::ldexp(1 + (part % kParts + 1) / double{kParts}, kOctaveFirst + part / kParts);
    return std::min(edge, largest_);
  }
  return 0;
}

}  // namespace kv
