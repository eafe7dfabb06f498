// Purpose: does one element lie in its admissible interval? Decided, never guessed: the precision
// is raised until the answer is certain (Ziv), and a violation is always computed with MPFR.
// Contract: with O, B and the computation's own error E, inner = [R(O-B+E), R(O+B-E)] and
// outer = [R(O-B-E), R(O+B+E)], endpoints rounded outward to double and then by R, the rounding of
// the output type. Inside inner: conforms. Outside outer: violates. Between: the next tier. At the
// last tier an endpoint is a tie to 1000 bits: the element conforms.
// Source: docs/numerics.md §2.2 (verdict), §8.2.
#pragma once

#include <memory>
#include <vector>

#include "reference/inputs.h"
#include "reference/precise/row.h"
#include "reference/profile.h"

namespace kv::reference {

enum class Decision : uint8_t { kConforms, kViolates, kUndecided };
enum class Tier : uint8_t { kDouble, kDoubleDouble, kMpfr };

/// Which element of a row, and what was observed there.
struct Question {
  int64_t column = -1;    // -1: the LSE
  double got = 0;         // exact value of the observed bits; finite or infinite, not NaN
  double lse_factor = 1;  // 1: natural logarithm; log2(e): base 2
};

struct Answer {
  Decision decision = Decision::kConforms;
  Tier tier = Tier::kDouble;  // that decided
  bool vacuous = false;       // the profile permits anything: conforms, and says nothing
  bool exact = false;         // under a certificate of exactness
  Basis basis = Basis::kBlackBox;
  double want = 0;           // nearest double to the reference's value
  double low = 0, high = 0;  // admissible interval, after output rounding
  double bound = 0;
  std::vector<BudgetLine> budget;  // only for violations
};

/// An element as the fast tier (attention.h) sees it.
struct FastElement {
  double value = 0, bound_low = 0, own_error = 0, got = 0;
};
struct FastAnswer {
  bool conforms = false;  // no more precision and no full bound is needed to accept it
  bool nearest = false;   // it is the reference's value, correctly rounded
};
FastAnswer surely_conforms(const FastElement& element, DType rounding);

/// The same for the elements of a row, side by side.
struct FastRow {
  const double* value = nullptr;      // [count]
  const double* bound_low = nullptr;  // [count]
  const double* own_error = nullptr;  // [count]
  const double* got = nullptr;        // [count]
  uint32_t count = 0;
};
/// The first element from `first` on of which it is not certain that surely_conforms() accepts it
/// and that its error_bound_ratio(), with bound_low, is at most `ratio_max` or 0; `count` if there
/// is none.
uint32_t first_in_question(const FastRow& row, uint32_t first, DType rounding, double ratio_max);

/// All questions about one row: what they share in the double tier is computed once, on the first.
class RowDecider {
 public:
  RowDecider(RowInputs inputs, const Profile& profile, DType output_dtype);
  ~RowDecider();
  RowDecider(RowDecider&&) noexcept;
  RowDecider& operator=(RowDecider&&) noexcept;
  /// `basis`: the strongest assumptions that may be used.
  Answer ask(const Question& question, Basis basis = Basis::kBlackBox);
  /// The double tier's own answer, for statistics over many cases: kUndecided where more precision
  /// is needed, and never published.
  Answer estimate(const Question& question, Basis basis);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// |error| / bound: the smallest t such that `got` lies in [R(O - tB), R(O + tB)], to 1 in 1000.
double error_bound_ratio(double value, double bound, double got, DType rounding);

}  // namespace kv::reference
