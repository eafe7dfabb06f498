#include "reference/precise/row.h"

#include <limits>
#include <optional>

#include "harness/core/check.h"
#include "reference/precise/dyadic.h"
#include "reference/precise/ordered.h"

namespace kv::reference {
namespace {

template <class T>
class ColumnEstimator {
 public:
  ColumnEstimator(const RowFacts<T>& facts, Basis basis, bool budget) : f_(facts), budget_(budget) {
    if (facts.vacuous || facts.unit.certified) return;
    const Profile& p = facts.profile;
    const bool probability = basis == Basis::kProbability;
    if (basis >= Basis::kOrder && order_is_known(p)) {
      tiles_ = tiles_in_order(facts.in, p);
      const bool plain = !facts.in.sink && !facts.in.scaled_kv;
      if (probability && rounding_is_known(p) && plain) weights_.emplace(facts, tiles_);
    }
    if (probability && may_be_dyadic(facts.in, p)) {
      dyadic_.emplace(facts);
      if (!dyadic_->certified()) dyadic_.reset();
    }
  }

  Estimate<T> column(uint32_t j) {
    const uint32_t first = j / kColumnsAtOnce<T> * kColumnsAtOnce<T>;
    if (block_.empty() || first != first_) estimate_block(first);
    return block_[j - first];
  }

 private:
  void estimate_block(uint32_t first) {
    first_ = first;
    block_.clear();
    const BlockSums<T> sums = column_sums(f_, first, budget_);
    const Columns<T> errors = running_errors(f_, tiles_, first);
    std::vector<Estimate<T>> rounded;
    if (weights_) rounded = weights_->columns(first, errors, budget_);
    for (uint32_t k = 0; k < sums.size() && first + k < f_.in.shape.dim_v; ++k) {
      const uint32_t j = first + k;
      const T own_error = this->own_error(j, sums[k]);
      Estimate<T>& best = block_.emplace_back(
          from_budget(sums[k], column_budget(f_, sums[k], exact_accumulation(j)), own_error));
      const auto take_if_tighter = [&best](Estimate<T> e) {
        if (!(e.bound < T(0)) && e.bound < best.bound) best = std::move(e);
      };
      if (dyadic_) take_if_tighter(dyadic_->column(j, budget_));
      if (tiles_.empty()) continue;
      Estimate<T> ordered = from_budget(sums[k], ordered_budget(f_, errors[k], sums[k]), own_error);
      ordered.basis = Basis::kOrder;
      take_if_tighter(std::move(ordered));
      if (!rounded.empty()) take_if_tighter(std::move(rounded[k]));
    }
  }

  // 0 where every partial sum is exact, -1 otherwise.
  T exact_accumulation(uint32_t j) const {
    if (!f_.unit.certified) return T(-1);
    return column_is_exact(f_.profile.values, of_certified(j)) ? T(0) : T(-1);
  }

  Column of_certified(uint32_t j) const {
    return {.values = std::span(f_.in.values).subspan(j),
            .stride = f_.in.shape.dim_v,
            .skip = f_.unit.negligible};
  }

  // Where all weights are 1 and every partial sum of V fits a double, no number type errs but in
  // the division; and not there where the sum is 0.
  T own_error(uint32_t j, const ColumnSums<T>& sums) const {
    constexpr int kDoubleBits = 53;
    const T size = absolute(sums.output);
    if (f_.weights_are_one() && column_fits(kDoubleBits, of_certified(j))) {
      return T(4 * NumberTraits<T>::kUnit) * size;
    }
    return f_.own_relative_error() * (sums.magnitude / f_.weight_sum + size) +
           T(NumberTraits<T>::kTiny) * sums.largest;
  }

  Estimate<T> from_budget(const ColumnSums<T>& sums, const ColumnBudget<T>& parts,
                          const T& own_error) const {
    Estimate<T> e;
    e.value = sums.output;
    e.bound = parts.total();
    e.own_error = own_error;
    if (budget_) e.budget = budget_lines(f_, sums, parts);
    return e;
  }

  const RowFacts<T>& f_;
  const bool budget_;
  std::vector<Tile> tiles_;
  std::optional<RoundedWeights<T>> weights_;
  std::optional<DyadicWeights<T>> dyadic_;
  uint32_t first_ = 0;  // of the columns in block_
  std::vector<Estimate<T>> block_;
};

}  // namespace

template <class T>
struct RowTier<T>::State {
  RowFacts<T> facts;
  const bool budget;
  std::optional<ColumnEstimator<T>> estimator[3] = {};  // by Basis
};

template <class T>
RowTier<T>::RowTier(const RowInputs& inputs, const Profile& profile, Budget budget)
    : state_(new State{.facts = RowFacts<T>(inputs, profile), .budget = budget == Budget::kLines}) {
  KV_CHECK(inputs.count() > 0, "an empty row has no formula");
}
template <class T>
RowTier<T>::~RowTier() = default;

template <class T>
bool RowTier<T>::vacuous() const {
  return state_->facts.vacuous;
}
template <class T>
bool RowTier<T>::exact() const {
  return state_->facts.unit.certified;
}
template <class T>
Estimate<T> RowTier<T>::lse() const {
  Estimate<T> e = lse_estimate(state_->facts, state_->budget);
  if (vacuous()) e.bound = T(std::numeric_limits<double>::infinity());
  return e;
}

template <class T>
Estimate<T> RowTier<T>::column(uint32_t j, Basis basis) {
  auto& estimator = state_->estimator[static_cast<size_t>(basis)];
  if (!estimator) estimator.emplace(state_->facts, basis, state_->budget);
  Estimate<T> e = estimator->column(j);
  if (vacuous()) e.bound = T(std::numeric_limits<double>::infinity());
  return e;
}

template <class T>
PreciseRow<T> precise_row(const RowInputs& inputs, const Profile& profile,
                          const RowQuestion& question) {
  RowTier<T> tier(inputs, profile, question.budget ? Budget::kLines : Budget::kNone);
  PreciseRow<T> row{
      .vacuous = tier.vacuous(), .exact = tier.exact(), .lse = tier.lse(), .columns = {}};
  for (uint32_t j : question.columns) row.columns.push_back(tier.column(j, question.basis));
  return row;
}

#define KV_NUMBER_TYPE(T)    \
  template class RowTier<T>; \
  template PreciseRow<T> precise_row(const RowInputs&, const Profile&, const RowQuestion&)
KV_NUMBER_TYPE(double);
KV_NUMBER_TYPE(DoubleDouble);
KV_NUMBER_TYPE(Mpfr256);
KV_NUMBER_TYPE(Mpfr512);
KV_NUMBER_TYPE(Mpfr1024);
#undef KV_NUMBER_TYPE

}  // namespace kv::reference
