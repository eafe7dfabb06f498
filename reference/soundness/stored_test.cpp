// No admissible set may reject what a conforming append stores: appends that turn by fp32 sines
// anywhere inside their documented errors, divide by the scale or multiply by its reciprocal, and
// round to nearest, are drawn at random. Planted faults must be rejected.
#include "reference/stored.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "reference/rope.h"
#include "reference/soundness/draw.h"

namespace kv::reference {
namespace {

struct Config {
  Rope rope;
  int64_t position = 0;
  DType source = DType::kF16, stored = DType::kE4m3;
  std::optional<float> scale;
  bool multiplies = false;  // by the reciprocal
};

Config draw_config(Draw& draw) {
  Config k;
  k.rope = {draw.of({RopePairing::kNeox, RopePairing::kInterleaved}), draw.of({64u, 32u, 2u, 62u}),
            draw.of({10000.0, 500000.0, 100.0})};
  k.position =
      draw.of({int64_t{0}, int64_t{1}, int64_t{77}, int64_t{-5}, int64_t{4095}, int64_t{100000}});
  k.source = draw.of({DType::kF16, DType::kBf16, DType::kF32});
  k.stored = draw.of({DType::kE4m3, DType::kE5m2, DType::kI8, k.source});
  k.multiplies = draw.one_in(2);
  if (dtype_bytes(k.stored) > 1 || draw.one_in(6)) return k;
  const double size = k.stored == DType::kI8 ? 0x1p-5 : k.stored == DType::kE5m2 ? 0x1p-12 : 0x1p-6;
  k.scale = static_cast<float>(size * (draw.one_in(2) ? 1 : 0.5 + draw.uniform()));
  return k;
}

/// A float within `most` of x.
float near(double x, double most, Draw& draw) {
  return static_cast<float>(x + most * 0.95 * (2 * draw.uniform() - 1));
}

/// K of the row as a kernel turns it: sine and cosine err by up to 2^-20, the angle by 16 units of
/// fp32, products and sums are rounded.
std::vector<double> turned(const Config& k, const std::vector<double>& row, Draw& draw) {
  const RopeArithmetic arithmetic;
  const Rotator rotator(k.rope, arithmetic);
  std::vector<double> out = row;
  const uint32_t pairs = k.rope.dims / 2;
  for (uint32_t i = 0; i < pairs; ++i) {
    const bool neox = k.rope.pairing == RopePairing::kNeox;
    const size_t at = neox ? i : 2 * i, other = neox ? i + pairs : 2 * i + 1;
    std::vector<double> unit(row.size(), 0);
    unit[at] = 1;
    const RotatedRow exact = rotator.rotate(k.position, unit);
    // What is left of the error without sine and arithmetic is the angle's.
    const double angle =
        std::max(0.0, exact.error[at] - arithmetic.sine_error * 1.0002 - 4 * 0x1p-24);
    const double turn = angle * 0.9 * (2 * draw.uniform() - 1);
    const double c = exact.value[at] - turn * exact.value[other];
    const double s = exact.value[other] + turn * exact.value[at];
    const float cosine = near(c, arithmetic.sine_error, draw);
    const float sine = near(s, arithmetic.sine_error, draw);
    const float a = static_cast<float>(row[at]), b = static_cast<float>(row[other]);
    if (draw.one_in(2)) {
      out[at] = std::fma(-b, sine, a * cosine);
      out[other] = std::fma(a, sine, b * cosine);
    } else {
      out[at] = a * cosine - b * sine;
      out[other] = b * cosine + a * sine;
    }
  }
  return out;
}

double stored_by(const Config& k, double x, Draw& draw) {
  float value = static_cast<float>(x);
  if (k.scale) {
    const float reciprocal = 1 / *k.scale;
    value = k.multiplies ? value * reciprocal : value / *k.scale;
  }
  const double code = decode(k.stored, encode_saturating(k.stored, value));
  // int8 may end at either -127 or -128.
  return k.stored == DType::kI8 && value <= -127.5f && draw.one_in(2) ? -128 : code;
}

std::vector<double> draw_row(const Config& k, Draw& draw) {
  std::vector<double> row;
  const double size = draw.of({1.0, 1.0, 30.0, 0.01});
  for (int i = 0; i < 64; ++i)
    row.push_back(decode(k.source, encode(k.source, size * draw.normal())));
  return row;
}

TEST(StoredSoundness, NoConformingAppendIsRejected) {
  const uint64_t wanted = std::getenv("KV_FULL") != nullptr ? 20'000'000 : 200'000;
  uint64_t elements = 0, rejected = 0, two_codes = 0, at_the_edge = 0;
  for (uint64_t seed = 1; elements < wanted; ++seed) {
    Draw draw(seed);
    const Config k = draw_config(draw);
    const std::vector<double> row = draw_row(k, draw);
    const RotatedRow want = Rotator(k.rope, {}).rotate(k.position, row);
    const std::vector<double> kernel = turned(k, row, draw);
    for (size_t i = 0; i < row.size(); ++i, ++elements) {
      const StoredRange range = admissible_store(
          {.value = want.value[i], .error = want.error[i], .scale = k.scale, .dtype = k.stored});
      const double got = stored_by(k, kernel[i], draw);
      two_codes += range.low < range.high;
      at_the_edge += range.low < range.high && (got == range.low || got == range.high);
      if (got >= range.low && got <= range.high) continue;
      if (rejected++ < 5)
        ADD_FAILURE() << "seed " << seed << " element " << i << ": " << got << " outside ["
                      << range.low << ", " << range.high << "], " << dtype_name(k.stored)
                      << " position " << k.position;
    }
  }
  std::printf(
      "stored elements %lu, rejected %lu; with more than one admissible code %lu, at the "
      "edge %lu\n",
      elements, rejected, two_codes, at_the_edge);
  EXPECT_EQ(rejected, 0u);
  EXPECT_GT(at_the_edge, elements / 1000) << "a set that nobody comes near the edge of is too wide";
}

/// Elements of 64 that the honest set rejects when the append is wrong in this way.
uint32_t rejected_by(const Config& honest, const Config& wrong, double (*change)(double)) {
  Draw draw(11);
  const std::vector<double> row = draw_row(honest, draw);
  const RotatedRow want = Rotator(honest.rope, {}).rotate(honest.position, row);
  const std::vector<double> kernel = turned(wrong, row, draw);
  uint32_t rejected = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const StoredRange range = admissible_store({.value = want.value[i],
                                                .error = want.error[i],
                                                .scale = honest.scale,
                                                .dtype = honest.stored});
    const double got = stored_by(wrong, change(kernel[i]), draw);
    rejected += !(got >= range.low && got <= range.high);
  }
  return rejected;
}

TEST(StoredSoundness, PlantedFaultsAreRejected) {
  Config honest;
  honest.rope = {RopePairing::kNeox, 64, 10000};
  honest.position = 77;
  honest.scale = 0x1p-6f;
  const auto same = [](double x) { return x; };
  EXPECT_EQ(rejected_by(honest, honest, same), 0u);
  Config wrong = honest;
  wrong.rope.pairing = RopePairing::kInterleaved;
  EXPECT_GT(rejected_by(honest, wrong, same), 30u);
  wrong = honest;
  wrong.position = 78;
  EXPECT_GT(rejected_by(honest, wrong, same), 4u);  // most pairs turn by less than a code
  wrong = honest;
  wrong.rope.dims = 62;
  EXPECT_GT(rejected_by(honest, wrong, same), 20u);
  wrong = honest;
  wrong.scale = 0x1.2p-6f;
  EXPECT_GT(rejected_by(honest, wrong, same), 10u);
  wrong = honest;
  wrong.stored = DType::kE5m2;  // two fraction bits instead of three
  EXPECT_GT(rejected_by(honest, wrong, same), 15u);
  // A thirty-second less: a quarter of a step of e4m3 to half of one.
  EXPECT_GT(rejected_by(honest, honest, [](double x) { return x * (1 - 0x1p-5); }), 2u);
}

}  // namespace
}  // namespace kv::reference
