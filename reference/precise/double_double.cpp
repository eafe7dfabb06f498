#include "reference/precise/double_double.h"

#include <cstdint>

#include "reference/elementary.h"
#include "reference/fast/lanes.h"

namespace kv::reference {
namespace {

constexpr DoubleDouble kLn2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

DoubleDouble scaled(DoubleDouble x, double power) { return {x.high * power, x.low * power}; }

struct Reduced {
  DoubleDouble expm1;  // of the reduced argument
  int64_t k;
};

// exp(x) = 2^k exp(r). exp(r / 1024) - 1 by its series, then ten doublings of the argument:
// expm1(2y) = 2 expm1(y) + expm1(y)^2, which never cancels.
Reduced reduced_expm1(DoubleDouble x) {
  constexpr double kShift = 0x1.8p52;
  const double k = (x.high * 0x1.71547652b82fep+0 + kShift) - kShift;
  const DoubleDouble r = scaled(x - DoubleDouble(k) * kLn2, 0x1p-10);
  DoubleDouble term = r, sum = r;
  for (int i = 2; i <= 9; ++i) {
    term = term * r / DoubleDouble(i);
    sum += term;
  }
  for (int i = 0; i < 10; ++i) sum = scaled(sum, 2) + sum * sum;
  return {sum, static_cast<int64_t>(k)};
}

double power_of_two(int64_t k) { return from_bits((k + 1023) << 52); }

}  // namespace

DoubleDouble exp_nonpositive(DoubleDouble x) {
  if (!(x.high >= -700)) return 0;
  const Reduced e = reduced_expm1(x);
  return scaled(e.expm1 + DoubleDouble(1), power_of_two(e.k));
}

// Newton on exp: each step doubles the accurate digits of the double tier's logarithm.
DoubleDouble log_at_least_one(DoubleDouble x) {
  DoubleDouble y = log_at_least_one(x.high);
  for (int i = 0; i < 2; ++i) y = y + (x * exp_nonpositive(-y) - DoubleDouble(1));
  return y;
}

DoubleDouble tanh_of(DoubleDouble x) {
  const bool negative = x.high < 0;
  const DoubleDouble twice = scaled(negative ? -x : x, -2);
  if (twice.high < -160) return negative ? -1 : 1;  // differs from 1 by less than 2^-230
  const Reduced e = reduced_expm1(twice);
  const double power = power_of_two(e.k);
  const DoubleDouble expm1 = scaled(e.expm1, power) + (DoubleDouble(power) - DoubleDouble(1));
  const DoubleDouble result = -expm1 / (expm1 + DoubleDouble(2));
  return negative ? -result : result;
}

}  // namespace kv::reference
