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

  Estimate<T> column(uint32_t j) const {
    const ColumnSums<T> sums = column_sums(f_, j, budget_);
    Estimate<T> best = from_budget(sums, column_budget(f_, sums, exact_accumulation(j)));
    const auto take_if_tighter = [&best](const Estimate<T>& e) {
      if (!(e.bound < T(0)) && e.bound < best.bound) best = e;
    };
    if (dyadic_) take_if_tighter(dyadic_->column(j));
    if (tiles_.empty()) return best;
    Estimate<T> ordered = from_budget(sums, ordered_budget(f_, tiles_, j, sums));
    ordered.basis = Basis::kOrder;
    take_if_tighter(ordered);
    if (weights_) take_if_tighter(weights_->column(j, running_error(f_, tiles_, j)));
    return best;
  }

 private:
  // 0 where every partial sum is exact, -1 otherwise.
  T exact_accumulation(uint32_t j) const {
    if (!f_.unit.certified) return T(-1);
    const Column column{.values = std::span(f_.in.values).subspan(j),
                        .stride = f_.in.shape.dim_v,
                        .skip = f_.unit.negligible};
    return column_is_exact(f_.profile.values, column) ? T(0) : T(-1);
  }

  Estimate<T> from_budget(const ColumnSums<T>& sums, const ColumnBudget<T>& parts) const {
    Estimate<T> e;
    e.value = sums.output;
    e.bound = parts.total();
    e.own_error = f_.own_relative_error() * (sums.magnitude / f_.weight_sum + absolute(e.value)) +
                  T(NumberTraits<T>::kTiny) * sums.largest;
    if (budget_) e.budget = budget_lines(f_, sums, parts);
    return e;
  }

  const RowFacts<T>& f_;
  const bool budget_;
  std::vector<Tile> tiles_;
  std::optional<RoundedWeights<T>> weights_;
  std::optional<DyadicWeights<T>> dyadic_;
};

}  // namespace

template <class T>
PreciseRow<T> precise_row(const RowInputs& inputs, const Profile& profile,
                          const RowQuestion& question) {
  KV_CHECK(inputs.count() > 0, "an empty row has no formula");
  const RowFacts<T> facts(inputs, profile);
  PreciseRow<T> row;
  row.vacuous = facts.vacuous;
  row.exact = facts.unit.certified;
  row.lse = lse_estimate(facts, question.budget);
  const ColumnEstimator<T> estimator(facts, question.basis, question.budget);
  for (uint32_t j : question.columns) row.columns.push_back(estimator.column(j));
  if (!row.vacuous) return row;
  const T infinite(std::numeric_limits<double>::infinity());
  row.lse.bound = infinite;
  for (Estimate<T>& column : row.columns) column.bound = infinite;
  return row;
}

struct DoubleRow::State {
  RowFacts<double> facts;
  std::optional<ColumnEstimator<double>> estimator[3];  // by Basis
};

DoubleRow::DoubleRow(const RowInputs& inputs, const Profile& profile)
    : state_(new State{.facts = RowFacts<double>(inputs, profile), .estimator = {}}) {}
DoubleRow::~DoubleRow() = default;

bool DoubleRow::vacuous() const { return state_->facts.vacuous; }
bool DoubleRow::exact() const { return state_->facts.unit.certified; }
Estimate<double> DoubleRow::lse() const { return lse_estimate(state_->facts, false); }

Estimate<double> DoubleRow::column(uint32_t j, Basis basis) {
  auto& estimator = state_->estimator[static_cast<size_t>(basis)];
  if (!estimator) estimator.emplace(state_->facts, basis, false);
  return estimator->column(j);
}

template PreciseRow<double> precise_row(const RowInputs&, const Profile&, const RowQuestion&);
template PreciseRow<DoubleDouble> precise_row(const RowInputs&, const Profile&, const RowQuestion&);
template PreciseRow<Mpfr256> precise_row(const RowInputs&, const Profile&, const RowQuestion&);
template PreciseRow<Mpfr512> precise_row(const RowInputs&, const Profile&, const RowQuestion&);
template PreciseRow<Mpfr1024> precise_row(const RowInputs&, const Profile&, const RowQuestion&);

}  // namespace kv::reference
