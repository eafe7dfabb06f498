#include "reference/rope.h"

#include <algorithm>
#include <boost/multiprecision/mpfr.hpp>
#include <cmath>

#include "harness/core/check.h"

namespace kv::reference {
namespace {

namespace mp = boost::multiprecision;
// 512 bits leave 128 right ones after the leading zeros of any frequency.
using Big = mp::number<mp::mpfr_float_backend<154, mp::allocate_stack>, mp::et_off>;

constexpr double kUnit32 = 0x1p-24;
constexpr double kOwn = 0x1p-48;  // of this computation, relative to |a| + |b|

struct SineCosine {
  double sine = 0, cosine = 0;
};

// Taylor to r^17 and r^16: truncation below 2^-57 for |r| <= pi/4.
SineCosine of_radians(double r) {
  const double r2 = r * r;
  double sine = 0, cosine = 0;
  for (int n = 16; n >= 2; n -= 2) {
    sine = (1 - sine) * r2 / (n * (n + 1));
    cosine = (1 - cosine) * r2 / (n * (n - 1));
  }
  return {r - r * sine, 1 - cosine};
}

// The turn's top 64 bits decide; what is cut off is below 2^-61 radians.
SineCosine of_turns(uint64_t turns) {
  constexpr double kRadians = 0x1.921fb54442d18p-62;     // 2 pi / 2^64
  const uint64_t quarter = turns + (uint64_t{1} << 61);  // rounds to the nearest quarter
  const int64_t rest = static_cast<int64_t>(turns - (quarter >> 62 << 62));
  const SineCosine s = of_radians(static_cast<double>(rest) * kRadians);
  switch (quarter >> 62) {
    case 0:
      return s;
    case 1:
      return {s.cosine, -s.sine};
    case 2:
      return {-s.sine, -s.cosine};
    default:
      return {-s.cosine, s.sine};
  }
}

// 1 / (2 pi), in units of 2^-128: the turn of the first pair for one position. That of each next
// pair is theta^(-2/dims) times as large.
Big first_turns() { return ldexp(Big(1 / (atan(Big(1)) * 8)), 128); }
Big ratio_of(const Rope& rope) { return exp(Big(log(Big(rope.theta)) * -2 / rope.dims)); }

}  // namespace

Rotator::Rotator(const Rope& rope, const RopeArithmetic& arithmetic)
    : rope_(rope), arithmetic_(arithmetic) {
  if (rope.pairing == RopePairing::kNone) return;
  KV_CHECK(rope.dims % 2 == 0 && rope.theta >= 1 && rope.theta < 1e300, "rope out of its range");
  Big turns = first_turns();
  const Big ratio = ratio_of(rope), full_turn = atan(Big(1)) * 8;
  for (uint32_t i = 0; i < rope.dims / 2; ++i, turns *= ratio) {
    const Big high = floor(Big(ldexp(turns, -64)));
    const uint64_t low = Big(turns - ldexp(high, 64)).convert_to<uint64_t>();
    step_.push_back(Turns{high.convert_to<uint64_t>()} << 64 | low);
    frequency_.push_back(Big(ldexp(turns, -128) * full_turn).convert_to<double>());
  }
}

RotatedRow Rotator::rotate(int64_t position, std::span<const double> row) const {
  RotatedRow out{{row.begin(), row.end()}, std::vector<double>(row.size(), 0)};
  KV_CHECK(step_.size() * 2 <= row.size(), "rope turns more dimensions than the row has");
  for (size_t i = 0; i < step_.size(); ++i) {
    const bool neox = rope_.pairing == RopePairing::kNeox;
    const size_t at = neox ? i : 2 * i, other = neox ? i + step_.size() : 2 * i + 1;
    // Modulo 2^128: whole turns drop out by themselves, for negative positions too.
    const Turns turns = static_cast<Turns>(static_cast<__int128>(position)) * step_[i];
    const SineCosine s = of_turns(static_cast<uint64_t>(turns >> 64));
    const double a = row[at], b = row[other], size = std::fabs(a) + std::fabs(b);
    out.value[at] = a * s.cosine - b * s.sine;
    out.value[other] = b * s.cosine + a * s.sine;
    const double angle = std::fabs(static_cast<double>(position)) * frequency_[i] *
                         (arithmetic_.frequency_error + arithmetic_.angle_error);
    const double relative = angle + arithmetic_.sine_error + 3 * kUnit32 + kOwn;
    // No rotation, however wrong, moves a point further than across its circle.
    out.error[at] = out.error[other] = std::min(relative * 1.0001, 2.01) * size + 0x1p-125;
  }
  return out;
}

void add_rounding(DType type, RotatedRow& row) {
  if (type == DType::kF32) return;
  const double unit = dtype_unit_roundoff(type), quantum = 0.5 * dtype_min_subnormal(type);
  for (size_t c = 0; c < row.value.size(); ++c) {
    if (row.error[c] == 0) continue;  // not rotated: as it was stored
    row.error[c] +=
        std::max(unit * (std::fabs(row.value[c]) + row.error[c]), quantum) * (1 + 0x1p-40);
  }
}

}  // namespace kv::reference
