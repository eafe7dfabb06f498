#include "reference/decide.h"

#include <cmath>
#include <limits>

#include "reference/precise/numbers.h"

namespace kv::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double rounded(DType type, double x) { return decode(type, encode(type, x)); }

template <class T>
struct Candidate {
  T value, bound, own_error;
};

// log2(e) to 256 bits and to as many as T has: base-2 results are compared in base 2.
template <class T>
T in_base(const T& x, double factor) {
  if (factor == 1) return x;
  if constexpr (std::is_same_v<T, double>) {
    return x * 0x1.71547652b82fep+0;
  } else if constexpr (std::is_same_v<T, DoubleDouble>) {
    return x * DoubleDouble(0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56);
  } else {
    return x / log(T(2));
  }
}

template <class T>
Decision compare(const Candidate<T>& c, double got, DType rounding, Answer& answer) {
  const T slack(NumberTraits<T>::kBoundSlack), error = c.own_error + c.own_error;
  const T outward = c.bound * (T(1) + slack) + error, inward = c.bound * (T(1) - slack) - error;
  answer.want = to_double_down(c.value);
  answer.bound = to_double_up(c.bound);
  answer.low = rounded(rounding, to_double_down(T(c.value - outward)));
  answer.high = rounded(rounding, to_double_up(T(c.value + outward)));
  if (got < answer.low || got > answer.high) return Decision::kViolates;
  const double low = rounded(rounding, to_double_up(T(c.value - inward)));
  const double high = rounded(rounding, to_double_down(T(c.value + inward)));
  return got >= low && got <= high ? Decision::kConforms : Decision::kUndecided;
}

// Answers the question from a row that holds the element as its LSE or as `column`.
template <class T>
Decision answer_from(const PreciseRow<T>& row, size_t column, DType output_dtype, const Question& q,
                     Answer& answer) {
  answer.vacuous = row.vacuous;
  answer.exact = row.exact;
  const Estimate<T>& e = q.column < 0 ? row.lse : row.columns[column];
  answer.budget = e.budget;
  answer.basis = e.basis;
  if (row.vacuous) {
    answer.want = to_double_down(e.value);
    answer.low = -kInfinity;
    answer.high = answer.bound = kInfinity;
    return Decision::kConforms;
  }
  if (q.column >= 0) {
    return compare(Candidate<T>{e.value, e.bound, e.own_error}, q.got, output_dtype, answer);
  }
  // Changing the base is one more rounding of this computation.
  const T change = q.lse_factor == 1 ? T(0) : absolute(e.value) * T(8 * NumberTraits<T>::kUnit);
  for (BudgetLine& line : answer.budget) line.value *= q.lse_factor;
  return compare(Candidate<T>{in_base(e.value, q.lse_factor), in_base(e.bound, q.lse_factor),
                              T(in_base(e.own_error, q.lse_factor) + change)},
                 q.got, DType::kF32, answer);
}

}  // namespace

bool surely_conforms(const FastElement& e, DType rounding) {
  const double inward = e.bound_low - 2 * e.own_error;
  const double low = rounded(rounding, e.value - inward);
  const double high = rounded(rounding, e.value + inward);
  return e.got >= low && e.got <= high;
}

RowDecider::RowDecider(RowInputs inputs, const Profile& profile, DType output_dtype, Basis basis)
    : inputs_(std::move(inputs)), profile_(profile), output_dtype_(output_dtype), basis_(basis) {}

Answer RowDecider::ask(const Question& q) {
  if (!row_) {
    RowQuestion all;
    all.basis = basis_;
    for (uint32_t j = 0; j < inputs_.shape.dim_v; ++j) all.columns.push_back(j);
    row_ = precise_row<double>(inputs_, profile_, all);
  }
  Answer answer;
  answer.decision = answer_from(*row_, static_cast<size_t>(q.column), output_dtype_, q, answer);
  const auto with = [&]<class T>(Tier tier, bool budget, T) {
    RowQuestion one;
    one.basis = basis_;
    one.budget = budget;
    if (q.column >= 0) one.columns.push_back(static_cast<uint32_t>(q.column));
    answer.tier = tier;
    answer.decision =
        answer_from(precise_row<T>(inputs_, profile_, one), 0, output_dtype_, q, answer);
  };
  if (answer.decision == Decision::kUndecided) with(Tier::kDoubleDouble, false, DoubleDouble());
  if (answer.decision != Decision::kConforms) with(Tier::kMpfr, true, Mpfr256());
  if (answer.decision == Decision::kUndecided) with(Tier::kMpfr, true, Mpfr512());
  if (answer.decision == Decision::kUndecided) with(Tier::kMpfr, true, Mpfr1024());
  if (answer.decision == Decision::kUndecided) answer.decision = Decision::kConforms;
  return answer;
}

double error_bound_ratio(double value, double bound, double got, DType rounding) {
  if (!(bound < kInfinity) || rounded(rounding, value) == got) return 0;
  const auto inside = [&](double t) {
    return got >= rounded(rounding, value - t * bound) &&
           got <= rounded(rounding, value + t * bound);
  };
  double high = 1;
  while (!inside(high)) {
    if (high > 0x1p100) return kInfinity;
    high *= 2;
  }
  double low = high == 1 ? 0 : high / 2;
  for (int i = 0; i < 10; ++i) {
    const double middle = 0.5 * (low + high);
    (inside(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace kv::reference
