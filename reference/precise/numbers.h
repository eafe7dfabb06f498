// Purpose: the number types of the precision tiers and what each of them guarantees.
// Contract: NumberTraits<T> bounds the error of one operation and of one elementary function, both
// relative, and what an underflow may lose. to_double_down/up are directed, never to nearest: an
// endpoint is rounded once more to the output type, and only outward rounding survives that.
#pragma once

#include <bit>
#include <boost/multiprecision/mpfr.hpp>
#include <cmath>
#include <cstdint>

#include "reference/elementary.h"
#include "reference/precise/double_double.h"

namespace kv::reference {

/// MPFR with a fixed precision on the stack: 256, 512 and 1024 bits.
template <unsigned kDigits>
using Mpfr = boost::multiprecision::number<
    boost::multiprecision::mpfr_float_backend<kDigits, boost::multiprecision::allocate_stack>,
    boost::multiprecision::et_off>;
using Mpfr256 = Mpfr<77>;
using Mpfr512 = Mpfr<154>;
using Mpfr1024 = Mpfr<308>;

template <class T>
struct NumberTraits;

template <>
struct NumberTraits<double> {
  static constexpr const char* kName = "double";
  static constexpr double kUnit = 0x1p-53, kFunction = 0x1p-49, kBoundSlack = 0x1p-32,
                          kTiny = 0x1p-1000;
};
template <>
struct NumberTraits<DoubleDouble> {
  static constexpr const char* kName = "double-double";
  static constexpr double kUnit = 0x1p-100, kFunction = 0x1p-94, kBoundSlack = 0x1p-80,
                          kTiny = 0x1p-990;
};
template <unsigned kDigits>
struct NumberTraits<Mpfr<kDigits>> {
  static constexpr const char* kName = "MPFR";
  // 77 decimal digits are 256 bits; one bit is kept back.
  static constexpr int kBits = kDigits == 77 ? 255 : kDigits == 154 ? 511 : 1023;
  static constexpr double kUnit =
      std::bit_cast<double>(static_cast<uint64_t>(1023 - (kBits < 1000 ? kBits : 1000)) << 52);
  static constexpr double kFunction = kUnit, kBoundSlack = kUnit * 0x1p20, kTiny = 0;
};

inline double next_up(double x) {
  if (x == 0) return 0x1p-1074;
  const int64_t bits = std::bit_cast<int64_t>(x);
  return std::bit_cast<double>(x > 0 ? bits + 1 : bits - 1);
}

inline double to_double_down(double x) { return x; }
inline double to_double_up(double x) { return x; }
inline double to_double_down(DoubleDouble x) { return x.low < 0 ? -next_up(-x.high) : x.high; }
inline double to_double_up(DoubleDouble x) { return x.low > 0 ? next_up(x.high) : x.high; }
template <unsigned kDigits>
double to_double_down(const Mpfr<kDigits>& x) {
  return mpfr_get_d(x.backend().data(), MPFR_RNDD);
}
template <unsigned kDigits>
double to_double_up(const Mpfr<kDigits>& x) {
  return mpfr_get_d(x.backend().data(), MPFR_RNDU);
}

template <unsigned kDigits>
Mpfr<kDigits> exp_nonpositive(const Mpfr<kDigits>& x) {
  return exp(x);
}
template <unsigned kDigits>
Mpfr<kDigits> log_at_least_one(const Mpfr<kDigits>& x) {
  return log(x);
}
template <unsigned kDigits>
Mpfr<kDigits> tanh_of(const Mpfr<kDigits>& x) {
  return tanh(x);
}

inline double absolute(double x) { return std::fabs(x); }
template <class T>
T absolute(const T& x) {
  return x < T(0) ? -x : x;
}
template <class T>
T greater_of(const T& a, const T& b) {
  return a < b ? b : a;
}

}  // namespace kv::reference
