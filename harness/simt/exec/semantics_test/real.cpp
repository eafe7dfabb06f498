#include "harness/simt/exec/semantics_test/real.h"

#include <algorithm>

namespace kv::simt::semantics {
namespace {

constexpr int kSinglePrecision = 1024;  // f32: 2^-298 .. 2^256 and more
constexpr int kDoublePrecision = 6500;  // f64: 2^-2148 .. 2^2048 and more

mpfr_rnd_t mode(Round direction) {
  switch (direction) {
    case Round::kZero:
      return MPFR_RNDZ;
    case Round::kDown:
      return MPFR_RNDD;
    case Round::kUp:
      return MPFR_RNDU;
    default:
      return MPFR_RNDN;
  }
}

int wider(const Real& a, const Real& b) {
  return int(std::max(mpfr_get_prec(a.get()), mpfr_get_prec(b.get())));
}

/// |value| in units of 2^quantum, rounded to an integer for a value of the given sign.
uint64_t round_magnitude(const Real& value, long quantum, Round direction) {
  Real scaled(value);
  mpfr_abs(scaled.get(), scaled.get(), MPFR_RNDN);
  mpfr_mul_2si(scaled.get(), scaled.get(), -quantum, MPFR_RNDN);
  if (direction == Round::kNearestAway) {
    mpfr_round(scaled.get(), scaled.get());
  } else {
    if (value.is_negative() && direction == Round::kUp) {
      direction = Round::kDown;
    } else if (value.is_negative() && direction == Round::kDown) {
      direction = Round::kUp;
    }
    mpfr_rint(scaled.get(), scaled.get(), mode(direction));
  }
  return mpfr_get_ui(scaled.get(), MPFR_RNDN);
}

uint64_t overflow(const Format& format, bool negative, Round direction, bool saturate) {
  if (saturate) return format.largest();
  if (!format.has_infinity) return format.canonical_nan;
  const bool stays = direction == Round::kZero || (direction == Round::kDown && !negative) ||
                     (direction == Round::kUp && negative);
  return stays ? format.largest() : format.infinity();
}

}  // namespace

bool is_nan(const Format& format, uint64_t bits) {
  const uint64_t magnitude = bits & (format.sign_bit() - 1);
  return format.has_infinity ? magnitude > format.infinity() : magnitude == format.sign_bit() - 1;
}

bool is_subnormal(const Format& format, uint64_t bits) {
  const uint64_t magnitude = bits & (format.sign_bit() - 1);
  return magnitude != 0 && magnitude < format.least_normal();
}

uint64_t flush(const Format& format, uint64_t bits) {
  return is_subnormal(format, bits) ? bits & format.sign_bit() : bits;
}

Real read(const Format& format, uint64_t bits) {
  Real value(format.exponent_bits > 8 ? kDoublePrecision : kSinglePrecision);
  const bool negative = (bits & format.sign_bit()) != 0;
  const uint64_t magnitude = bits & (format.sign_bit() - 1);
  if (is_nan(format, bits)) {
    mpfr_set_nan(value.get());
    return value;
  }
  if (format.has_infinity && magnitude == format.infinity()) {
    mpfr_set_inf(value.get(), negative ? -1 : 1);
    return value;
  }
  const uint64_t field = magnitude >> format.fraction_bits;
  uint64_t significand = magnitude & (format.least_normal() - 1);
  if (field != 0) significand |= format.least_normal();
  const long exponent = long(std::max<uint64_t>(field, 1)) - format.bias() - format.fraction_bits;
  mpfr_set_ui_2exp(value.get(), significand, exponent, MPFR_RNDN);
  mpfr_setsign(value.get(), value.get(), negative, MPFR_RNDN);
  return value;
}

uint64_t round(const Format& format, const Real& value, Round direction, bool saturate) {
  if (value.is_nan()) return format.canonical_nan;
  const uint64_t sign = value.is_negative() ? format.sign_bit() : 0;
  if (value.is_zero()) return sign;
  if (value.is_infinite()) {
    if (saturate) return sign | format.largest();
    return format.has_infinity ? sign | format.infinity() : format.canonical_nan;
  }
  const long least = 1 - format.bias() - format.fraction_bits;
  const long exponent = mpfr_get_exp(value.get()) - 1;
  const long quantum = std::max(exponent - format.fraction_bits, least);
  if (exponent > format.bias() + 1) return sign | overflow(format, sign, direction, saturate);
  const uint64_t magnitude = (uint64_t(quantum - least) << format.fraction_bits) +
                             round_magnitude(value, quantum, direction);
  if (magnitude > format.largest()) return sign | overflow(format, sign, direction, saturate);
  return sign | magnitude;
}

Real from_integer(__int128 value) {
  Real high, low;
  mpfr_set_si_2exp(high.get(), long(value >> 64), 64, MPFR_RNDN);
  mpfr_set_ui(low.get(), uint64_t(value), MPFR_RNDN);
  return add(high, low, Round::kNearest);
}

Real add(const Real& a, const Real& b, Round direction) {
  Real sum(wider(a, b));
  mpfr_add(sum.get(), a.get(), b.get(), mode(direction));
  return sum;
}

Real multiply(const Real& a, const Real& b) {
  Real product(wider(a, b));
  mpfr_mul(product.get(), a.get(), b.get(), MPFR_RNDN);
  return product;
}

Real fma(const Real& a, const Real& b, const Real& c, Round direction) {
  return add(multiply(a, b), c, direction);
}

Real divide(const Real& a, const Real& b) {
  Real quotient(wider(a, b));
  mpfr_div(quotient.get(), a.get(), b.get(), MPFR_RNDN);
  return quotient;
}

Real negate(const Real& a) {
  Real result(a);
  mpfr_neg(result.get(), result.get(), MPFR_RNDN);
  return result;
}

Real integral(const Real& a, Round direction) {
  Real result(a);
  mpfr_rint(result.get(), a.get(), mode(direction));
  return result;
}

}  // namespace kv::simt::semantics
