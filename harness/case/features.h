// Purpose: what a case exercises, as named counters, for must-hit lists: a campaign that never met
// an empty row or a page straddle is red, not green. The features are the rows of feature_table.h.
// Contract: a pure function of the case. Counts say in how many rows, steps or operations (as fits)
// a feature occurs; features of the settings count 1. The order of the names is stable.
// Example:  FeatureSet met; met += features_of(c); if (!met.has(feature("empty_row"))) ...
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "harness/case/feature_table.h"

namespace kv {

/// A row of the table.
enum class Feature : uint8_t {};
inline constexpr size_t kFeatureCount = feature_rows::kFeatureRows.size();

constexpr const FeatureRow& row_of(Feature feature) {
  return feature_rows::kFeatureRows[static_cast<size_t>(feature)];
}
/// "empty_row", ...; stable, for reports.
constexpr std::string_view feature_name(Feature feature) { return row_of(feature).name; }

/// Does not compile when there is none of this name.
consteval Feature feature(std::string_view name) {
  for (size_t i = 0; i < kFeatureCount; ++i)
    if (feature_rows::kFeatureRows[i].name == name) return static_cast<Feature>(i);
  throw "no feature has this name";
}

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
