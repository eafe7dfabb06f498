// Rotation and stored elements, against MPFR and by hand.
#include "reference/rope.h"

#include <gtest/gtest.h>

#include <boost/multiprecision/mpfr.hpp>
#include <cmath>
#include <limits>

#include "harness/core/philox.h"
#include "reference/stored.h"

namespace kv::reference {
namespace {

namespace mp = boost::multiprecision;
using Big = mp::number<mp::mpfr_float_backend<154, mp::allocate_stack>, mp::et_off>;

std::vector<double> some_row(size_t n) {
  std::vector<double> row;
  for (size_t i = 0; i < n; ++i) {
    row.push_back(static_cast<double>(Philox{.key = 3}.word(0, i) >> 40) * 0x1p-22 - 2);
  }
  return row;
}

// The definition, in 512 bits, pair by pair.
std::vector<Big> brute_force(const Rope& rope, int64_t position, const std::vector<double>& row) {
  std::vector<Big> out(row.begin(), row.end());
  for (uint32_t i = 0; i < rope.dims / 2; ++i) {
    const bool neox = rope.pairing == RopePairing::kNeox;
    const size_t a = neox ? i : 2 * i, b = neox ? i + rope.dims / 2 : 2 * i + 1;
    const Big angle = Big(position) * pow(Big(rope.theta), Big(-2.0 * i) / Big(rope.dims));
    out[a] = Big(row[a]) * cos(angle) - Big(row[b]) * sin(angle);
    out[b] = Big(row[b]) * cos(angle) + Big(row[a]) * sin(angle);
  }
  return out;
}

TEST(Rope, AgreesWithTheDefinitionAtAnyPosition) {
  const std::vector<double> row = some_row(80);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  double worst = 0;
  for (RopePairing pairing : {RopePairing::kNeox, RopePairing::kInterleaved}) {
    for (uint32_t dims : {2u, 32u, 64u, 80u}) {
      for (double theta : {1.0, 10000.0, 500000.0, 1e6}) {
        const Rope rope{pairing, dims, theta};
        const Rotator rotator(rope, {});
        for (int64_t position : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{4095},
                                 int64_t{1} << 40, kMost, int64_t{-1}, -kMost}) {
          const RotatedRow got = rotator.rotate(position, row);
          const std::vector<Big> want = brute_force(rope, position, row);
          for (size_t c = 0; c < row.size(); ++c) {
            const double off = abs(Big(got.value[c]) - want[c]).convert_to<double>();
            worst = std::max(worst, off);
            if (c < dims) continue;
            EXPECT_EQ(got.value[c], row[c]) << "a dimension that does not turn";
            EXPECT_EQ(got.error[c], 0);
          }
        }
      }
    }
  }
  EXPECT_LT(worst, 0x1p-49 * 4);
  EXPECT_GT(worst, 0x1p-56);
}

TEST(Rope, PositionZeroTurnsNothing) {
  const std::vector<double> row = some_row(16);
  const RotatedRow got = Rotator({RopePairing::kNeox, 16, 1e4}, {}).rotate(0, row);
  EXPECT_EQ(got.value, row);
}

// A correct fp32 kernel stays inside `error`; the other pairing, the next position and a partial
// rotation of other dimensions do not.
TEST(Rope, ToleratesArithmeticAndNothingElse) {
  const std::vector<double> row = some_row(64);
  const Rope rope{RopePairing::kNeox, 64, 10000};
  const RotatedRow want = Rotator(rope, {}).rotate(1000, row);
  const auto outside = [&](const std::vector<double>& got) {
    size_t count = 0;
    for (size_t c = 0; c < row.size(); ++c)
      count += std::fabs(got[c] - want.value[c]) > want.error[c];
    return count;
  };
  std::vector<double> kernel = row;
  for (uint32_t i = 0; i < 32; ++i) {
    const float frequency = static_cast<float>(std::pow(10000.0, -2.0 * i / 64));
    const float angle = 1000.0f * frequency;
    const float cosine = static_cast<float>(std::cos(double{angle}));
    const float sine = static_cast<float>(std::sin(double{angle}));
    const float a = static_cast<float>(row[i]), b = static_cast<float>(row[i + 32]);
    kernel[i] = a * cosine - b * sine;
    kernel[i + 32] = b * cosine + a * sine;
  }
  EXPECT_EQ(outside(kernel), 0u);
  EXPECT_GT(outside(Rotator({RopePairing::kInterleaved, 64, 10000}, {}).rotate(1000, row).value),
            40u);
  EXPECT_GT(outside(Rotator(rope, {}).rotate(1001, row).value), 10u);
  EXPECT_GT(outside(Rotator({RopePairing::kNeox, 32, 10000}, {}).rotate(1000, row).value), 40u);
  EXPECT_GT(outside(row), 40u);
}

TEST(Stored, MovedElementsAreThemselves) {
  const StoredRange r = admissible_store({.value = 0.333251953125, .dtype = DType::kF16});
  EXPECT_EQ(r.low, 0.333251953125);
  EXPECT_EQ(r.high, r.low);
}

TEST(Stored, QuantisedElementsHaveOneCodeOrTwoNeighbours) {
  const StoredRange plain = admissible_store({.value = 1.0, .scale = 0.25f, .dtype = DType::kE4m3});
  EXPECT_EQ(plain.low, 4);
  EXPECT_EQ(plain.high, 4);
  const StoredRange tie = admissible_store({.value = 2.5, .scale = 1.0f, .dtype = DType::kI8});
  EXPECT_EQ(tie.low, 2);
  EXPECT_EQ(tie.high, 3);
  const StoredRange negative = admissible_store({.value = 3, .scale = -0.5f, .dtype = DType::kI8});
  EXPECT_EQ(negative.low, -6);
  EXPECT_EQ(negative.high, -6);
}

TEST(Stored, SaturatesBeyondTheRange) {
  const auto range = [](DType type, double x) {
    return admissible_store({.value = x, .scale = 1.0f, .dtype = type});
  };
  EXPECT_EQ(range(DType::kE4m3, 1e6).high, 448);
  EXPECT_EQ(range(DType::kE4m3, 1e6).low, 448);
  EXPECT_EQ(range(DType::kE5m2, -1e6).low, -57344);
  EXPECT_EQ(range(DType::kI8, 300).high, 127);
  EXPECT_EQ(range(DType::kI8, -300).low, -128);
  EXPECT_EQ(range(DType::kI8, -127).low, -127);
}

}  // namespace
}  // namespace kv::reference
