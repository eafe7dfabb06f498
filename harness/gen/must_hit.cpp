#include "harness/gen/must_hit.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace kv {
namespace {

using feature_rows::kFeatureRows;

constexpr size_t kConditionCount = static_cast<size_t>(
    std::count_if(kFeatureRows.begin(), kFeatureRows.end(),
                  [](const FeatureRow& row) { return row.asked != Asked::kNo; }));
static_assert(kConditionCount <= kConditionsMax);

constexpr auto kConditions = [] {
  std::array<Feature, kConditionCount> list{};
  size_t used = 0;
  for (size_t i = 0; i < kFeatureCount; ++i)
    if (kFeatureRows[i].asked != Asked::kNo) list[used++] = Feature(i);
  return list;
}();

struct Pair {
  Feature a, b;
};
/// Pages in order are never out of order.
constexpr Pair kImpossible[] = {{feature("pages_out_of_order"), feature("order_identity")}};

bool is_required(Feature a, Feature b) {
  const FeatureRow &row_a = row_of(a), &row_b = row_of(b);
  if (row_a.asked == Asked::kAlone || row_b.asked == Asked::kAlone) return false;
  if (row_a.choice != Choice::kFree && row_a.choice == row_b.choice) return false;
  return std::none_of(std::begin(kImpossible), std::end(kImpossible), [&](const Pair& p) {
    return (p.a == a && p.b == b) || (p.a == b && p.b == a);
  });
}

template <class Visit>
void for_each(const ConditionSet& set, Visit visit) {
  for (size_t i = 0; i < set.size(); ++i)
    if (set[i]) visit(i);
}

ConditionSet conditions_of(const FeatureSet& had) {
  ConditionSet set;
  for (size_t i = 0; i < kConditionCount; ++i) set[i] = had.has(kConditions[i]);
  return set;
}

size_t pairs_in(const std::vector<ConditionSet>& pairs) {
  size_t all = 0;
  for (const ConditionSet& of : pairs) all += of.count();
  return all;
}

}  // namespace

std::span<const Feature> conditions() { return kConditions; }

MustHit::MustHit(const OfferSet& offered)
    : size_(kConditionCount), count_(size_ * size_, 0), required_(size_) {
  for (size_t a = 0; a < size_; ++a) excused_[a] = !can_be_met(offered, kConditions[a]);
  for (size_t a = 0; a < size_; ++a)
    for (size_t b = a; b < size_; ++b)
      required_[a][b] =
          !excused_[a] && !excused_[b] && (a == b || is_required(kConditions[a], kConditions[b]));
  open_ = required_;
}

size_t MustHit::add(const FeatureSet& had) {
  const ConditionSet set = conditions_of(had);
  size_t fresh = 0;
  for_each(set, [&](size_t a) {
    for_each(required_[a] & set, [&](size_t b) { ++count_[a * size_ + b]; });
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

void MustHit::excuse(const MustHit& refused) {
  for (size_t a = 0; a < size_; ++a) {
    const bool was_promised = open_[a][a] && may_be_refused(kConditions[a]);
    open_[a] &= refused.open_[a];
    if (was_promised) open_[a].set(a);
  }
}

size_t MustHit::required() const { return pairs_in(required_); }

size_t MustHit::met() const { return required() - pairs_in(open_); }

std::vector<std::string> MustHit::missing() const {
  std::vector<std::string> missing, pairs;
  for (size_t a = 0; a < size_; ++a) {
    for_each(open_[a], [&](size_t b) {
      std::string name(feature_name(kConditions[a]));
      if (a != b) name += " + " + std::string(feature_name(kConditions[b]));
      (a == b ? missing : pairs).push_back(std::move(name));
    });
  }
  missing.insert(missing.end(), pairs.begin(), pairs.end());
  return missing;
}

std::vector<std::string> MustHit::excused() const {
  std::vector<std::string> names;
  for_each(excused_, [&](size_t i) { names.emplace_back(feature_name(kConditions[i])); });
  return names;
}

}  // namespace kv
