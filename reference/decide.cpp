#include "reference/decide.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "harness/core/wide.h"
#include "reference/precise/numbers.h"

namespace kv::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double rounded(DType type, double x) { return decode(type, encode(type, x)); }

struct Grid {
  int digits = 24, exponent_min = -126;
};

Grid grid_of(DType type) {
  switch (type) {
    case DType::kF16:
      return {11, -14};
    case DType::kBf16:
      return {8, -126};
    case DType::kE4m3:
      return {4, -6};
    case DType::kE5m2:
      return {3, -14};
    default:
      return {24, -126};
  }
}

// Half the distance from x, a number of the type, to its nearer neighbour, or less; without a
// branch, for a row of them.
struct HalfSteps {
  explicit HalfSteps(DType type)
      : lowest(power_of_two(grid_of(type).exponent_min)),
        of_binade(power_of_two(-grid_of(type).digits)) {}
  [[gnu::always_inline]] double at(double x) const {
    const uint64_t bits = std::bit_cast<uint64_t>(x);
    const double binade = std::bit_cast<double>(bits & 0x7ff0000000000000);
    // The lower neighbour of a power of two is twice as near.
    const double power = (bits & 0x000fffffffffffff) == 0 ? 0.5 : 1;
    return std::max(binade, lowest) * of_binade * power;
  }
  double lowest, of_binade;
};

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

// Answers the question from the estimate of its element.
template <class T>
Decision answer_from(const Estimate<T>& e, DType output_dtype, const Question& q, Answer& answer) {
  answer.budget = e.budget;
  answer.basis = e.basis;
  if (answer.vacuous) {
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

template <class T>
void answer_in(RowTier<T>& row, const Question& q, Basis basis, DType output_dtype,
               Answer& answer) {
  answer.vacuous = row.vacuous();
  answer.exact = row.exact();
  const Estimate<T> e =
      q.column < 0 ? row.lse() : row.column(static_cast<uint32_t>(q.column), basis);
  answer.decision = answer_from(e, output_dtype, q, answer);
}

}  // namespace

// With |got - value| < half a step + inward, value + inward lies beyond the midpoint below `got`
// and value - inward before the one above: monotone rounding does the rest. Only what is neither
// clearly inside nor clearly nearest is rounded.
FastAnswer surely_conforms(const FastElement& e, DType rounding) {
  const double inward = e.bound_low - 2 * e.own_error, distance = std::fabs(e.got - e.value);
  const double half = HalfSteps(rounding).at(e.got) * (1 - 0x1p-20);
  FastAnswer answer;
  answer.nearest = distance < half - 2 * e.own_error;
  answer.conforms = distance < half + inward;
  if (answer.conforms) return answer;
  const double low = rounded(rounding, e.value - inward);
  const double high = rounded(rounding, e.value + inward);
  answer.conforms = e.got >= low && e.got <= high;
  return answer;
}

namespace {

constexpr uint32_t kTogether = 8;  // elements that are asked at once

// A ratio found by halving is at most 2^-10 above the true one, absolutely below 1 and relatively
// beyond.
double certain_limit(double ratio_max) {
  return std::max(0.0, (ratio_max - 0x1p-9) * (1 - 0x1p-9));
}

struct Certainty {
  HalfSteps steps;
  double limit;
  /// 0: what first_in_question() asks is certain. As wide as the numbers that it is made of.
  [[gnu::always_inline]] int64_t doubt(const FastRow& row, uint32_t j) const {
    const double distance = std::fabs(row.got[j] - row.value[j]), bound = row.bound_low[j];
    const double half = steps.at(row.got[j]) * (1 - 0x1p-20);
    const double inward = bound - 2 * row.own_error[j], share = limit * bound;
    const int64_t outside = distance < half + inward ? 0 : 1;
    const int64_t larger = distance < half + (share > 0 ? share : 0.0) ? 0 : 1;
    return outside | larger;
  }
};

/// Of the first kTogether elements that are not certain all, or that are not there all.
KV_WIDE uint32_t first_of_uncertain(const Certainty& certainty, const FastRow& row,
                                    uint32_t first) {
  uint32_t j = first;
  for (; j + kTogether <= row.count; j += kTogether) {
    int64_t doubts = 0;
    for (uint32_t k = 0; k < kTogether; ++k) doubts |= certainty.doubt(row, j + k);
    if (doubts != 0) break;
  }
  return j;
}

}  // namespace

uint32_t first_in_question(const FastRow& row, uint32_t first, DType rounding, double ratio_max) {
  const Certainty certainty{HalfSteps(rounding), certain_limit(ratio_max)};
  uint32_t j = first_of_uncertain(certainty, row, first);
  while (j < row.count && certainty.doubt(row, j) == 0) ++j;
  return j;
}

struct RowDecider::State {
  State(RowInputs in, const Profile& p, DType type)
      : inputs(std::move(in)),
        profile(p),
        output_dtype(type),
        row(inputs, profile, Budget::kNone) {}
  const RowInputs inputs;
  const Profile profile;
  const DType output_dtype;
  RowTier<double> row;
  // Tiers of which no element has asked yet are not there.
  std::optional<RowTier<DoubleDouble>> double_double;
  std::optional<RowTier<Mpfr256>> mpfr256;
  std::optional<RowTier<Mpfr512>> mpfr512;
  std::optional<RowTier<Mpfr1024>> mpfr1024;
};

RowDecider::RowDecider(RowInputs inputs, const Profile& profile, DType output_dtype)
    : state_(std::make_unique<State>(std::move(inputs), profile, output_dtype)) {}
RowDecider::~RowDecider() = default;
RowDecider::RowDecider(RowDecider&&) noexcept = default;
RowDecider& RowDecider::operator=(RowDecider&&) noexcept = default;

Answer RowDecider::estimate(const Question& q, Basis basis) {
  Answer answer;
  State& s = *state_;
  answer_in(s.row, q, basis, s.output_dtype, answer);
  return answer;
}

Answer RowDecider::ask(const Question& q, Basis basis) {
  State& s = *state_;
  Answer answer = estimate(q, basis);
  const auto with = [&](auto& row, Tier tier, Budget budget) {
    if (!row) row.emplace(s.inputs, s.profile, budget);
    answer.tier = tier;
    answer_in(*row, q, basis, s.output_dtype, answer);
  };
  const auto undecided = [&] { return answer.decision == Decision::kUndecided; };
  if (undecided()) with(s.double_double, Tier::kDoubleDouble, Budget::kNone);
  if (answer.decision != Decision::kConforms) with(s.mpfr256, Tier::kMpfr, Budget::kLines);
  if (undecided()) with(s.mpfr512, Tier::kMpfr, Budget::kLines);
  if (undecided()) with(s.mpfr1024, Tier::kMpfr, Budget::kLines);
  if (undecided()) answer.decision = Decision::kConforms;
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
