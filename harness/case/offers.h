// Purpose: what a plugin offers of the features that it may refuse: a worker asks the plugin, the
// generator leaves out what is not offered, and nobody requires it of a campaign.
// Contract: derived from feature_table.h: those of its rows that have an offer. Their order is part
// of what a worker says, and stable.
// Example: if (!offered.has(feature("sinks"))) c.shape.sinks = false;
#pragma once

#include <cstdint>

#include "harness/case/features.h"

namespace kv {

constexpr bool may_be_refused(Feature f) { return !row_of(f).offer.empty(); }

class OfferSet {
 public:
  /// Bits in the order of the table.
  static constexpr unsigned kBits = [] {
    unsigned bits = 0;
    for (const FeatureRow& row : feature_rows::kFeatureRows) bits += !row.offer.empty();
    return bits;
  }();
  static_assert(kBits < 64);

  static constexpr OfferSet all() { return OfferSet((uint64_t{1} << kBits) - 1); }
  constexpr OfferSet() = default;
  constexpr explicit OfferSet(uint64_t bits) : bits_(bits) {}
  /// True for a feature that cannot be refused.
  constexpr bool has(Feature f) const { return !may_be_refused(f) || (bits_ >> bit_of(f) & 1); }
  constexpr void add(Feature f) { bits_ |= uint64_t{may_be_refused(f)} << bit_of(f); }
  constexpr uint64_t bits() const { return bits_; }
  bool operator==(const OfferSet&) const = default;

 private:
  static constexpr auto kPlaces = [] {
    std::array<uint8_t, kFeatureCount> places{};
    uint8_t used = 0;
    for (size_t i = 0; i < kFeatureCount; ++i) {
      places[i] = used;
      used = static_cast<uint8_t>(used + !feature_rows::kFeatureRows[i].offer.empty());
    }
    return places;
  }();
  static constexpr unsigned bit_of(Feature f) { return kPlaces[static_cast<size_t>(f)]; }

  uint64_t bits_ = 0;
};

/// Whether a case may have it at all: it is offered, and one of what it needs.
bool can_be_met(const OfferSet& offered, Feature f);

/// One request of four tokens, prefilled at once: one head of 64, fp16, causal, pages of 16.
Case plain_case();

/// The same case without the settings that are not offered: another value of the same choice stands
/// in, or none. Padding and trees, which are operations, stay.
void leave_out(const OfferSet& offered, Case& c);

/// What a plugin offers, by asking whether it takes a small case: each feature beside the plainest
/// case that it takes. One that takes no such case is taken to offer everything: its reasons then
/// stand in the report.
OfferSet find_offers(bool (*takes)(const void* plugin, const Case& c), const void* plugin);

}  // namespace kv
