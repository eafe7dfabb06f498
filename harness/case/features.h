// Purpose: what a case exercises, as named counters, for must-hit lists: a campaign that never met
// an empty row or a page straddle is red, not green.
// Contract: a pure function of the case. Counts say in how many rows, steps or operations (as fits)
// a feature occurs; features of the shape count 1. The order of the names is stable.
// Example:  FeatureSet met; met += features_of(c); if (!met.has(Feature::kEmptyRow)) ...
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "harness/case/case.h"

namespace kv {

enum class Feature : uint8_t {
  // attention rows
  kEmptyRow,           // a live query row that sees no key
  kPadQueryRow,        // a query row that stands at a PAD slot
  kQueriesExceedKeys,  // more query rows than slots
  kQueriesNotKeys,     // query rows of one request differ from its slots
  kQueriesEqualKeys,
  kNoQueries,     // a row that only appends
  kNoKeys,        // query rows over a cache of no slots
  kQueriesOnly,   // attends without appending
  kDecode,        // appends one token to a non-empty cache and attends with it
  kPrefillWhole,  // appends several tokens to an empty cache and attends with them
  kPrefillChunk,  // appends several tokens to a non-empty cache and attends with them
  kPaddingLeft,
  kPaddingRight,
  kPaddingHoles,
  kVerifyTree,  // a row with a tree that branches
  // pages
  kPageStraddle,     // slots in more than one page
  kPagesOutOfOrder,  // a page followed by one that is not its physical successor
  kLengthModPage0,
  kLengthModPage1,
  kLengthModPageMinus1,
  kPageReuse,  // a page that a released request has held
  kPoolFull,   // no page is free after a step
  // batches and histories
  kMultiRowBatch,
  kMixedBatch,     // decode and prefill rows in one step
  kRaggedQueries,  // rows of a step differ in query rows
  kCancel,
  kFinish,
  kPrefixShared,
  kPositionOffset,
  // shape
  kMha,
  kGqa,
  kMqa,
  kMultiLayer,
  kF16,
  kBf16,
  kF32,
  kHeadDim64,
  kHeadDim80,
  kHeadDim96,
  kHeadDim128,
  kHeadDim256,
  kHeadDimOther,
  kValueDim,  // K and V of different dimension
  kLatent,    // V lies in K
  kSoftcap,
  kAlibi,
  kSinks,
  kCausalNone,
  kCausalTopLeft,
  kCausalBottomRight,
  kWindowLeft,
  kWindowRight,
  kMaskPackedBits,
  kMaskBoolKeep,
  kMaskBoolBlock,
  kMaskAdditive,
  kMaskFiniteMinimum,
  kMaskBroadcastBatch,
  kMaskBroadcastHead,
  kMaskByHead,  // a plane for each of several query heads
  kMaskBroadcastQuery,
  // pool
  kPageSlots1,
  kPageSlots2To8,
  kPageSlots16,
  kPageSlots32To64,
  kPageSlots128To256,
  kOrderIdentity,
  kOrderReversed,
  kOrderShuffled,
  kFarPages,
  kLayoutSlotHead,
  kLayoutHeadSlot,
  kPoisonUndefined,
  kPoisonFiniteHuge,
  kPoisonNan,
  // data
  kDesignNormal,
  kDesignUniformExact,
  kDesignDyadic,
  kDesignSubsetSelect,
  kDesignSparseCode,
  kDesignBoundaryNeedles,
  kDesignAscending,
  kDesignLargeScores,
  kDesignCensus,
  kDesignConstantValue,
  // execution
  kScheduleSeed,
  kRoundingNearest,
  kRoundingRandom,
  kRoundingUp,
  kRoundingDown,
  kRoundingMmaAmpere,
  kRoundingMmaHopper,
  kSplitForced,
  kCascade,
  kRepeated,
  kVariantForced,
  // how K and V are stored
  kCacheE4m3,
  kCacheE5m2,
  kCacheI8,
  kScaleTensor,
  kScaleHead,
  kScaleToken,
  kScalePage,
  kRopeNeox,
  kRopeInterleaved,
  kRopePartial,
  kEnd,  // not a feature: their number
};
inline constexpr size_t kFeatureCount = static_cast<size_t>(Feature::kEnd);

/// "empty_row", ...; stable, for reports.
std::string_view feature_name(Feature feature);

struct FeatureSet {
  std::array<uint64_t, kFeatureCount> count{};

  uint64_t& operator[](Feature f) { return count[static_cast<size_t>(f)]; }
  uint64_t operator[](Feature f) const { return count[static_cast<size_t>(f)]; }
  bool has(Feature f) const { return (*this)[f] > 0; }
  FeatureSet& operator+=(const FeatureSet& other) {
    for (size_t i = 0; i < kFeatureCount; ++i) count[i] += other.count[i];
    return *this;
  }
  bool operator==(const FeatureSet&) const = default;
};

/// For a case that Timeline refuses, only the features of shape, pool, data and execution.
FeatureSet features_of(const Case& c);

}  // namespace kv
