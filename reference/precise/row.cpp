#include "reference/precise/row.h"

#include <limits>

#include "harness/core/check.h"
#include "reference/precise/black_box.h"

namespace kv::reference {
namespace {

template <class T>
Estimate<T> column_estimate(const RowFacts<T>& f, uint32_t j, bool budget) {
  const ColumnSums<T> sums = column_sums(f, j, budget);
  const bool exact_sum =
      f.unit.certified &&
      column_is_exact(f.profile.values, {.values = std::span(f.in.values).subspan(j),
                                         .stride = f.in.shape.dim_v,
                                         .skip = f.unit.negligible});
  const ColumnBudget<T> parts = column_budget(f, sums, exact_sum ? T(0) : T(-1));
  Estimate<T> e;
  e.value = sums.output;
  e.bound = parts.total();
  e.own_error = f.own_relative_error() * (sums.magnitude / f.weight_sum + absolute(e.value)) +
                T(NumberTraits<T>::kTiny) * sums.largest;
  if (budget) e.budget = budget_lines(f, sums, parts);
  return e;
}

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
  for (uint32_t j : question.columns) {
    row.columns.push_back(column_estimate(facts, j, question.budget));
  }
  if (!row.vacuous) return row;
  const T infinite(std::numeric_limits<double>::infinity());
  row.lse.bound = infinite;
  for (Estimate<T>& column : row.columns) column.bound = infinite;
  return row;
}

template PreciseRow<double> precise_row(const RowInputs&, const Profile&, const RowQuestion&);
template PreciseRow<DoubleDouble> precise_row(const RowInputs&, const Profile&, const RowQuestion&);
template PreciseRow<Mpfr256> precise_row(const RowInputs&, const Profile&, const RowQuestion&);
template PreciseRow<Mpfr512> precise_row(const RowInputs&, const Profile&, const RowQuestion&);
template PreciseRow<Mpfr1024> precise_row(const RowInputs&, const Profile&, const RowQuestion&);

}  // namespace kv::reference
