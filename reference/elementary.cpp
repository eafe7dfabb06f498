#include "reference/elementary.h"

#include "reference/fast/exponential.h"

namespace kv::reference {

double exp_nonpositive(double x) { return exp_nonpositive<double>(x); }

double tanh_of(double x) { return hyperbolic_tangent<double>(x); }

double exp2_of(double x) {
  constexpr double kShift = 0x1.8p52, kLn2 = 0x1.62e42fefa39efp-1;
  const double k = (x + kShift) - kShift;
  const double fraction = 1.0 + reduced_exp((x - k) * kLn2).tail;
  return fraction * from_bits((static_cast<int64_t>(k) + 1023) << 52);
}

// x = m 2^k with m in [sqrt(1/2), sqrt(2)]; log m = 2 atanh(s), s = (m-1)/(m+1), |s| <= 0.1716.
// The odd series to s^21 truncates below 2^-60 relative.
double log_at_least_one(double x) {
  constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45;
  const int64_t bits = to_bits(x);
  int64_t k = (bits >> 52) - 1023;
  double m = from_bits((bits & 0x000fffffffffffff) | (int64_t{1023} << 52));
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    ++k;
  }
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double series = 1.0 / 21;
  for (int i = 19; i >= 3; i -= 2) series = series * s2 + 1.0 / i;
  const double log_m = 2 * s + 2 * s * s2 * series;
  const double n = static_cast<double>(k);
  return n * kLn2High + (log_m + n * kLn2Low);
}

}  // namespace kv::reference
