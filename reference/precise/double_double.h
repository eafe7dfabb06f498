// Purpose: about 104 bits without allocation, for elements that double cannot decide.
// Contract: +, -, *, / are accurate to 2^-100 relative (to the operands), exp, log and tanh to
// 2^-94, or to 2^-1070 absolute where the low part underflows (double_double_test). No fma:
// products are split by Dekker's method, so that every machine gives the same bits. Arguments stay
// below 2^900 in magnitude. Source: Dekker 1971; Joldes, Muller, Popescu 2017.
#pragma once

namespace kv::reference {

struct DoubleDouble {
  double high = 0, low = 0;
  constexpr DoubleDouble() = default;
  constexpr DoubleDouble(double x) : high(x) {}
  constexpr DoubleDouble(double h, double l) : high(h), low(l) {}
};

inline DoubleDouble quick_two_sum(double a, double b) {  // |a| >= |b|
  const double s = a + b;
  return {s, b - (s - a)};
}

inline DoubleDouble two_sum(double a, double b) {
  const double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

inline DoubleDouble two_product(double a, double b) {
  constexpr double kSplit = 134217729;  // 2^27 + 1
  const double p = a * b;
  const double ta = kSplit * a, a1 = ta - (ta - a), a2 = a - a1;
  const double tb = kSplit * b, b1 = tb - (tb - b), b2 = b - b1;
  return {p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2};
}

inline DoubleDouble operator-(DoubleDouble a) { return {-a.high, -a.low}; }

inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  DoubleDouble s = two_sum(a.high, b.high);
  const DoubleDouble t = two_sum(a.low, b.low);
  s = quick_two_sum(s.high, s.low + t.high);
  return quick_two_sum(s.high, s.low + t.low);
}

inline DoubleDouble operator-(DoubleDouble a, DoubleDouble b) { return a + -b; }

inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble p = two_product(a.high, b.high);
  return quick_two_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}

inline DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
  const double q1 = a.high / b.high;
  const DoubleDouble r = a - b * DoubleDouble(q1);
  const double q2 = r.high / b.high;
  const double q3 = (r - b * DoubleDouble(q2)).high / b.high;
  return quick_two_sum(q1, q2) + DoubleDouble(q3);
}

inline DoubleDouble& operator+=(DoubleDouble& a, DoubleDouble b) { return a = a + b; }
inline bool operator<(DoubleDouble a, DoubleDouble b) {
  return a.high < b.high || (a.high == b.high && a.low < b.low);
}
inline bool operator>(DoubleDouble a, DoubleDouble b) { return b < a; }

/// x <= 0; 0 below -700.
DoubleDouble exp_nonpositive(DoubleDouble x);
/// x >= 1.
DoubleDouble log_at_least_one(DoubleDouble x);
DoubleDouble tanh_of(DoubleDouble x);

}  // namespace kv::reference
