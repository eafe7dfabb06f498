#include "harness/gen/must_hit.h"

#include <algorithm>
#include <iterator>

namespace kv {
namespace {

using F = Feature;

enum Axis : uint8_t {
  kFree,
  kType,
  kSharing,
  kCausality,
  kPageSize,
  kOrder,
  kLayout,
  kPoison,
  kDesign,
  kDim,
  kRounding,
  kEncoding,
  kCache,
  kScale,
  kPairing,
  kAlone
};

constexpr Condition kConditions[] = {
    {F::kEmptyRow, kFree},
    {F::kPadQueryRow, kFree},
    {F::kQueriesExceedKeys, kFree},
    {F::kDecode, kFree},
    {F::kPrefillWhole, kFree},
    {F::kPrefillChunk, kFree},
    {F::kPaddingLeft, kFree},
    {F::kPaddingRight, kFree},
    {F::kPageStraddle, kFree},
    {F::kPagesOutOfOrder, kFree},
    {F::kPageReuse, kFree},
    {F::kPoolFull, kFree},
    {F::kMultiRowBatch, kFree},
    {F::kMixedBatch, kFree},
    {F::kRaggedQueries, kFree},
    {F::kCancel, kFree},
    {F::kPrefixShared, kFree},
    {F::kPositionOffset, kFree},
    {F::kSoftcap, kFree},
    {F::kAlibi, kFree},
    {F::kSinks, kFree},
    {F::kWindowLeft, kFree},
    {F::kWindowRight, kFree},
    {F::kSplitForced, kFree},
    {F::kVerifyTree, kFree},
    {F::kPaddingHoles, kFree},
    {F::kMaskPackedBits, kEncoding},
    {F::kMaskBoolKeep, kEncoding},
    {F::kMaskBoolBlock, kEncoding},
    {F::kMaskAdditive, kEncoding},
    {F::kMaskFiniteMinimum, kAlone},
    {F::kMaskBroadcastBatch, kAlone},
    {F::kMaskBroadcastHead, kAlone},
    {F::kMaskBroadcastQuery, kAlone},
    {F::kMaskByHead, kAlone},
    {F::kCascade, kAlone},
    {F::kMha, kSharing},
    {F::kGqa, kSharing},
    {F::kMqa, kSharing},
    {F::kF16, kType},
    {F::kBf16, kType},
    {F::kF32, kType},
    {F::kCausalNone, kCausality},
    {F::kCausalTopLeft, kCausality},
    {F::kCausalBottomRight, kCausality},
    {F::kPageSlots1, kPageSize},
    {F::kPageSlots16, kPageSize},
    {F::kPageSlots128To256, kPageSize},
    {F::kOrderIdentity, kOrder},
    {F::kOrderReversed, kOrder},
    {F::kOrderShuffled, kOrder},
    {F::kFarPages, kOrder},
    {F::kLayoutSlotHead, kLayout},
    {F::kLayoutHeadSlot, kLayout},
    {F::kPoisonUndefined, kPoison},
    {F::kPoisonFiniteHuge, kPoison},
    {F::kPoisonNan, kPoison},
    {F::kDesignNormal, kDesign},
    {F::kDesignUniformExact, kDesign},
    {F::kDesignSparseCode, kDesign},
    {F::kDesignBoundaryNeedles, kDesign},
    {F::kDesignCensus, kDesign},
    {F::kDesignDyadic, kDesign},
    {F::kDesignSubsetSelect, kAlone},
    {F::kDesignAscending, kDesign},
    {F::kDesignLargeScores, kDesign},
    {F::kDesignConstantValue, kDesign},
    {F::kMultiLayer, kFree},
    {F::kNoKeys, kAlone},
    {F::kQueriesOnly, kFree},
    {F::kNoQueries, kFree},
    {F::kLengthModPage0, kFree},
    {F::kLengthModPage1, kFree},
    {F::kLengthModPageMinus1, kFree},
    {F::kScheduleSeed, kFree},
    {F::kHeadDim64, kDim},
    {F::kHeadDim80, kDim},
    {F::kHeadDim96, kDim},
    {F::kHeadDim128, kDim},
    {F::kHeadDim256, kDim},
    {F::kValueDim, kAlone},
    {F::kLatent, kAlone},
    {F::kRoundingNearest, kRounding},
    {F::kRoundingRandom, kRounding},
    {F::kRoundingUp, kRounding},
    {F::kRoundingDown, kRounding},
    {F::kRoundingMmaAmpere, kRounding},
    {F::kRoundingMmaHopper, kRounding},
    {F::kCacheE4m3, kCache},
    {F::kCacheE5m2, kCache},
    {F::kCacheI8, kCache},
    {F::kScaleTensor, kScale},
    {F::kScaleHead, kScale},
    {F::kScaleToken, kScale},
    {F::kScalePage, kScale},
    {F::kRopeNeox, kPairing},
    {F::kRopeInterleaved, kPairing},
    {F::kRopePartial, kFree},
};

struct Pair {
  Feature a, b;
};
/// Pages in order are never out of order.
constexpr Pair kImpossible[] = {{F::kPagesOutOfOrder, F::kOrderIdentity}};

bool is_required(const Condition& a, const Condition& b) {
  if (a.axis == kAlone || b.axis == kAlone) return false;  // too rare to ask for its pairs
  if (a.axis != kFree && a.axis == b.axis) return false;
  return std::none_of(std::begin(kImpossible), std::end(kImpossible), [&](const Pair& p) {
    return (p.a == a.feature && p.b == b.feature) || (p.a == b.feature && p.b == a.feature);
  });
}

static_assert(std::size(kConditions) <= kConditionsMax);

/// For each condition a the required pairs (a, b) with b >= a; (a, a) is the condition itself.
const std::vector<ConditionSet>& required_pairs() {
  static const auto pairs = [] {
    std::vector<ConditionSet> list(std::size(kConditions));
    for (size_t a = 0; a < list.size(); ++a)
      for (size_t b = a; b < list.size(); ++b)
        list[a][b] = a == b || is_required(kConditions[a], kConditions[b]);
    return list;
  }();
  return pairs;
}
template <class Visit>
void for_each(const ConditionSet& set, Visit visit) {
  for (size_t i = 0; i < set.size(); ++i)
    if (set[i]) visit(i);
}

ConditionSet conditions_of(const FeatureSet& had) {
  ConditionSet set;
  for (size_t i = 0; i < std::size(kConditions); ++i) set[i] = had.has(kConditions[i].feature);
  return set;
}

size_t pairs_in(const std::vector<ConditionSet>& pairs) {
  size_t all = 0;
  for (const ConditionSet& of : pairs) all += of.count();
  return all;
}

}  // namespace

std::span<const Condition> conditions() { return kConditions; }

MustHit::MustHit()
    : size_(std::size(kConditions)), count_(size_ * size_, 0), open_(required_pairs()) {}

size_t MustHit::add(const FeatureSet& had) {
  const ConditionSet set = conditions_of(had);
  size_t fresh = 0;
  for_each(set, [&](size_t a) {
    for_each(required_pairs()[a] & set, [&](size_t b) { ++count_[a * size_ + b]; });
    fresh += (open_[a] & set).count();
    open_[a] &= ~set;
  });
  return fresh;
}

size_t MustHit::gain(const FeatureSet& had) const {
  const ConditionSet set = conditions_of(had);
  size_t fresh = 0;
  for_each(set, [&](size_t a) { fresh += (open_[a] & set).count(); });
  return fresh;
}

size_t MustHit::required() const { return pairs_in(required_pairs()); }

size_t MustHit::met() const { return required() - pairs_in(open_); }

std::vector<std::string> MustHit::missing() const {
  std::vector<std::string> missing, pairs;
  for (size_t a = 0; a < size_; ++a) {
    for_each(open_[a], [&](size_t b) {
      std::string name(feature_name(kConditions[a].feature));
      if (a != b) name += " + " + std::string(feature_name(kConditions[b].feature));
      (a == b ? missing : pairs).push_back(std::move(name));
    });
  }
  missing.insert(missing.end(), pairs.begin(), pairs.end());
  return missing;
}

MustHit& MustHit::operator+=(const MustHit& other) {
  for (size_t i = 0; i < count_.size(); ++i) count_[i] += other.count_[i];
  for (size_t a = 0; a < size_; ++a) open_[a] &= other.open_[a];
  return *this;
}

}  // namespace kv
