#include "harness/gen/cover.h"

namespace kv {
namespace {

constexpr uint64_t kCandidates = 5000;
/// Where the search for what none of those has ends.
constexpr uint64_t kCandidatesMax = 50000;
/// New pairs that a case must bring to be taken in each round.
constexpr size_t kRounds[] = {200, 100, 50, 25, 12, 6, 3, 1};

}  // namespace

std::vector<uint64_t> covering_array(uint64_t seed, const DrawOptions& options,
                                     const MustHit* already, const std::set<uint64_t>& without) {
  MustHit met = already != nullptr ? *already : MustHit(options.offered);
  const auto candidate = [&](uint64_t i) {
    if (without.contains(i)) return FeatureSet{};
    PhiloxSource choices(seed, i);
    return features_of(draw(choices, options));
  };
  std::vector<FeatureSet> candidates;
  candidates.reserve(kCandidates);
  for (uint64_t i = 0; i < kCandidates; ++i) candidates.push_back(candidate(i));
  std::vector<uint64_t> chosen;
  for (const size_t least : kRounds) {
    for (uint64_t i = 0; i < kCandidates; ++i) {
      if (met.gain(candidates[i]) < least) continue;
      met.add(candidates[i]);
      chosen.push_back(i);
    }
  }
  for (uint64_t i = kCandidates; i < kCandidatesMax && met.met() < met.required(); ++i)
    if (met.add(candidate(i)) > 0) chosen.push_back(i);
  return chosen;
}

}  // namespace kv
