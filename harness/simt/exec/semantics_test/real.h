// Purpose: exact arithmetic and correct rounding for the definitions in this folder, by MPFR: no
// code shared with the executor, no libm.
// Contract: a Real of f32 operands holds sums, products and fma exactly; quotients and roots have
// at least 300 bits more than any result, so that rounding them once more is correct.
// Example:  round(kF32, add(read(kF32, a), read(kF32, b), Round::kNearest), Round::kNearest)
#pragma once

#include <mpfr.h>

#include <cstdint>

namespace kv::simt::semantics {

enum class Round { kNearest, kZero, kDown, kUp, kNearestAway };

/// A binary floating-point format. Without infinities (e4m3) all-ones is the only NaN.
struct Format {
  int exponent_bits, fraction_bits;
  bool has_infinity;
  uint64_t canonical_nan;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int bits() const { return 1 + exponent_bits + fraction_bits; }
  uint64_t sign_bit() const { return uint64_t{1} << (bits() - 1); }
  uint64_t infinity() const {
    return ((uint64_t{1} << exponent_bits) - 1) << fraction_bits;  // also e4m3's top binade
  }
  uint64_t largest() const { return has_infinity ? infinity() - 1 : sign_bit() - 2; }
  uint64_t least_normal() const { return uint64_t{1} << fraction_bits; }
};

inline constexpr Format kF16{5, 10, true, 0x7fff};
inline constexpr Format kBf16{8, 7, true, 0x7fff};
inline constexpr Format kTf32{8, 10, true, 0x3ffff};  // its 19 bits, not yet shifted up
inline constexpr Format kF32{8, 23, true, 0x7fffffff};
inline constexpr Format kF64{11, 52, true, 0x7ff8000000000000};
inline constexpr Format kE4m3{4, 3, false, 0x7f};
inline constexpr Format kE5m2{5, 2, true, 0x7f};

static_assert(sizeof(long) == 8, "MPFR is given 64-bit integers as longs");

class Real {
 public:
  explicit Real(int precision = 1024) { mpfr_init2(value_, precision); }
  Real(const Real& other) : Real(int(mpfr_get_prec(other.value_))) {
    mpfr_set(value_, other.value_, MPFR_RNDN);
  }
  Real& operator=(const Real& other) {
    mpfr_set_prec(value_, mpfr_get_prec(other.value_));
    mpfr_set(value_, other.value_, MPFR_RNDN);
    return *this;
  }
  ~Real() { mpfr_clear(value_); }

  mpfr_ptr get() { return value_; }
  mpfr_srcptr get() const { return value_; }
  bool is_nan() const { return mpfr_nan_p(value_) != 0; }
  bool is_infinite() const { return mpfr_inf_p(value_) != 0; }
  bool is_zero() const { return mpfr_zero_p(value_) != 0; }
  bool is_negative() const { return mpfr_signbit(value_) != 0; }
  double approximately() const { return mpfr_get_d(value_, MPFR_RNDN); }

 private:
  mpfr_t value_;
};

/// The value of `bits`; NaN for every NaN.
Real read(const Format& format, uint64_t bits);
/// The nearest representable in the given direction. Beyond the largest value: infinity or the
/// largest, by direction; formats without infinity give NaN unless `saturate`, which gives the
/// largest value for every format. NaN gives the canonical NaN.
uint64_t round(const Format& format, const Real& value, Round direction, bool saturate = false);

bool is_nan(const Format& format, uint64_t bits);
bool is_subnormal(const Format& format, uint64_t bits);
/// Subnormal bits to zero of the same sign.
uint64_t flush(const Format& format, uint64_t bits);

Real from_integer(__int128 value);
/// Exact; the direction only decides the sign of an exact zero sum.
Real add(const Real& a, const Real& b, Round direction);
Real multiply(const Real& a, const Real& b);
Real fma(const Real& a, const Real& b, const Real& c, Round direction);
Real divide(const Real& a, const Real& b);
Real negate(const Real& a);
/// Rounded to an integer, ties to even for kNearest.
Real integral(const Real& a, Round direction);

}  // namespace kv::simt::semantics
