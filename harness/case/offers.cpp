#include "harness/case/offers.h"

#include <algorithm>
#include <optional>
#include <span>

namespace kv {
namespace {

using feature_rows::kFeatureRows;

/// What every case has one value of, so that a plugin's plainest case may have another than ours.
constexpr Choice kAlwaysMade[] = {Choice::kType, Choice::kSharing, Choice::kCausality, Choice::kDim,
                                  Choice::kPageSize};

/// Gives the case the feature in the `way`-th way; false when there are no more.
bool give(const FeatureRow& row, uint32_t way, Case& c) {
  if (row.with != nullptr) return row.with(c, way);
  if (way == 0) row.set(c);
  return way == 0;
}

/// Visits every combination of values of the choices that are always made, the plainest first, as
/// long as the visitor says false.
template <class Visit>
bool any_combination(std::span<const Choice> choices, const Case& c, Visit visit) {
  if (choices.empty()) return visit(c);
  for (const FeatureRow& row : kFeatureRows) {
    if (row.choice != choices[0]) continue;
    Case with = c;
    for (uint32_t way = 0; give(row, way, with); ++way, with = c)
      if (any_combination(choices.subspan(1), with, visit)) return true;
  }
  return false;
}

/// The first offered row of the choice; nullptr when there is none.
const FeatureRow* stand_in(const OfferSet& offered, Choice choice) {
  if (choice == Choice::kFree) return nullptr;
  for (size_t i = 0; i < kFeatureCount; ++i) {
    const FeatureRow& row = kFeatureRows[i];
    const bool is_offered = may_be_refused(Feature(i)) && offered.has(Feature(i));
    if (row.choice == choice && is_offered && row.set != nullptr) return &row;
  }
  return nullptr;
}

}  // namespace

bool can_be_met(const OfferSet& offered, Feature f) {
  if (!offered.has(f)) return false;
  const auto& needs = row_of(f).needs_one_of;
  if (needs[0].empty()) return true;
  return std::any_of(needs.begin(), needs.end(), [&](std::string_view name) {
    for (size_t i = 0; i < kFeatureCount; ++i)
      if (kFeatureRows[i].name == name) return offered.has(Feature(i));
    return false;
  });
}

Case plain_case() {
  constexpr RequestId kRequest(0);
  Case c;
  c.ops = {op::Admit{.request = kRequest, .prompt_tokens = 4},
           op::Step{.rows = {{.request = kRequest, .append = 4, .queries = 4}}}};
  return c;
}

void leave_out(const OfferSet& offered, Case& c) {
  for (size_t i = 0; i < kFeatureCount; ++i) {
    const FeatureRow& row = kFeatureRows[i];
    if (row.of_case == nullptr || offered.has(Feature(i)) || !row.of_case(c)) continue;
    const FeatureRow* other = stand_in(offered, row.choice);
    if (other != nullptr)
      other->set(c);
    else if (row.without != nullptr)
      row.without(c);
  }
}

OfferSet find_offers(bool (*takes)(const void* plugin, const Case& c), const void* plugin) {
  std::optional<Case> plainest;
  any_combination(kAlwaysMade, plain_case(), [&](const Case& c) {
    if (takes(plugin, c)) plainest = c;
    return plainest.has_value();
  });
  if (!plainest) return OfferSet::all();
  OfferSet offered;
  for (size_t i = 0; i < kFeatureCount; ++i) {
    if (!may_be_refused(Feature(i))) continue;
    Case c = *plainest;
    for (uint32_t way = 0; give(kFeatureRows[i], way, c); ++way, c = *plainest)
      if (takes(plugin, c)) offered.add(Feature(i));
  }
  return offered;
}

}  // namespace kv
