// The codec against CUDA's own host conversions, which share no code with it. KV_FULL=1 takes all
// 2^32 floats (four minutes on one core); otherwise a stride that visits every exponent.
#include "harness/core/formats.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "harness/core/philox.h"

namespace kv {
namespace {

constexpr DType kAll[] = {DType::kF32,  DType::kF16,  DType::kBf16,
                          DType::kE4m3, DType::kE5m2, DType::kI8};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool full() { return std::getenv("KV_FULL") != nullptr; }

uint32_t code_count(DType type) { return dtype_bytes(type) == 1 ? 256 : 65536; }

double cuda_decode(DType type, uint32_t bits) {
  switch (type) {
    case DType::kF16:
      return __half2float(__half(__half_raw{static_cast<uint16_t>(bits)}));
    case DType::kBf16: {
      return __bfloat162float(__nv_bfloat16(__nv_bfloat16_raw{static_cast<uint16_t>(bits)}));
    }
    default:
      break;
  }
  const auto kind = type == DType::kE4m3 ? __NV_E4M3 : __NV_E5M2;
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(static_cast<uint8_t>(bits), kind)));
}

uint32_t cuda_encode(DType type, double value, bool saturate) {
  const auto mode = saturate ? __NV_SATFINITE : __NV_NOSAT;
  switch (type) {
    case DType::kF16:
      return __half_raw(__double2half(value)).x;
    case DType::kBf16:
      return __nv_bfloat16_raw(__double2bfloat16(value)).x;
    case DType::kE4m3:
      return __nv_cvt_double_to_fp8(value, mode, __NV_E4M3);
    default:
      return __nv_cvt_double_to_fp8(value, mode, __NV_E5M2);
  }
}

// Counts instead of asserting on each of billions of values, and shows the first few.
struct Mismatches {
  uint64_t count = 0;
  void compare(DType type, double value, uint32_t want, uint32_t got) {
    if (want == got) return;
    // CUDA keeps sign and some payload of a NaN for the 8-bit formats; ours is always one NaN.
    if (value != value && std::isnan(decode(type, want)) && std::isnan(decode(type, got))) return;
    if (count++ < 5) {
      ADD_FAILURE() << dtype_name(type) << " of " << value << " (bits 0x" << std::hex
                    << std::bit_cast<uint64_t>(value) << "): want 0x" << want << ", got 0x" << got;
    }
  }
  void encode_both(DType type, double value) {
    const bool fp8 = dtype_bytes(type) == 1;
    compare(type, value, cuda_encode(type, value, false), encode(type, value));
    if (fp8) compare(type, value, cuda_encode(type, value, true), encode_saturating(type, value));
  }
};

TEST(Formats, EveryCodeDecodesAsCudaDecodesIt) {
  for (DType type : {DType::kF16, DType::kBf16, DType::kE4m3, DType::kE5m2}) {
    for (uint32_t code = 0; code < code_count(type); ++code) {
      const double want = cuda_decode(type, code), got = decode(type, code);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(got)) << dtype_name(type) << " code " << code;
      } else {
        ASSERT_EQ(std::bit_cast<uint64_t>(want), std::bit_cast<uint64_t>(got))
            << dtype_name(type) << " code " << code;
      }
    }
  }
}

TEST(Formats, EveryFiniteCodeSurvivesEncoding) {
  for (DType type : {DType::kF16, DType::kBf16, DType::kE4m3, DType::kE5m2}) {
    for (uint32_t code = 0; code < code_count(type); ++code) {
      const double value = decode(type, code);
      if (std::isnan(value)) continue;
      ASSERT_EQ(encode(type, value), code) << dtype_name(type);
      ASSERT_EQ(encode_down(type, value), code) << dtype_name(type);
      ASSERT_EQ(encode_up(type, value), code) << dtype_name(type);
    }
  }
}

TEST(Formats, RowsDecodeAsSingleValuesDo) {
  for (DType type : kAll) {
    const uint32_t stride = dtype_bytes(type), count = stride == 4 ? 4096 : code_count(type);
    std::vector<std::byte> bytes(1 + size_t{count} * stride);  // deliberately misaligned
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t code = stride == 4 ? i * 0x00100401u : i;
      std::memcpy(&bytes[1 + size_t{i} * stride], &code, stride);
    }
    std::vector<double> row(count);
    decode_row(type, &bytes[1], count, row.data());
    for (uint32_t i = 0; i < count; ++i) {
      const double want = decode(type, stride == 4 ? i * 0x00100401u : i);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(row[i])) << dtype_name(type) << " " << i;
      } else {
        ASSERT_EQ(std::bit_cast<uint64_t>(row[i]), std::bit_cast<uint64_t>(want))
            << dtype_name(type) << " " << i;
      }
    }
  }
}

TEST(Formats, FloatsEncodeAsCudaEncodesThem) {
  const uint64_t stride = full() ? 1 : 4099;
  Mismatches bad;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += stride) {
    const double value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    for (DType type : {DType::kF16, DType::kBf16, DType::kE4m3, DType::kE5m2}) {
      bad.encode_both(type, value);
    }
    if (value == value) {
      bad.compare(DType::kF32, value, static_cast<uint32_t>(bits), encode(DType::kF32, value));
    }
  }
  EXPECT_EQ(bad.count, 0u);
}

// Where a second rounding, through float, would show: midpoints of neighbours and their vicinity.
TEST(Formats, DoublesNearMidpointsRoundOnce) {
  Mismatches bad;
  for (DType type : {DType::kF16, DType::kBf16, DType::kE4m3, DType::kE5m2}) {
    const uint32_t step = full() || dtype_bytes(type) == 1 ? 1 : 3;
    for (uint32_t code = 0; code + 1 < code_count(type) / 2; code += step) {
      const double low = decode(type, code), high = decode(type, code + 1);
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const double middle = 0.5 * (low + high);
      for (double nudge : {0.0, 0x1p-52, -0x1p-52, 0x1p-51, 0x1p-40, -0x1p-40, 0x1p-30}) {
        bad.encode_both(type, middle * (1 + nudge));
        bad.encode_both(type, -middle * (1 + nudge));
      }
    }
  }
  EXPECT_EQ(bad.count, 0u);
}

TEST(Formats, RandomDoublesEncodeAsCudaEncodesThem) {
  const Philox random{.key = 20};
  Mismatches bad;
  for (uint64_t i = 0; i < (full() ? 20'000'000 : 300'000); ++i) {
    const uint64_t bits = random.word(0, i);
    // Exponents -40..40: the whole range of the small formats and beyond both ends of it.
    const uint64_t exponent = 1023 - 40 + (bits >> 52 & 0x3ff) % 81;
    const double value = std::bit_cast<double>((bits & 0x800fffffffffffffu) | exponent << 52);
    for (DType type : {DType::kF16, DType::kBf16, DType::kE4m3, DType::kE5m2}) {
      bad.encode_both(type, value);
    }
  }
  EXPECT_EQ(bad.count, 0u);
}

// Order of codes by value: sign and magnitude to two's complement.
int64_t rank(DType type, uint32_t code) {
  const uint32_t sign = uint32_t{1} << (8 * dtype_bytes(type) - 1);
  return code & sign ? -int64_t{code & (sign - 1)} : int64_t{code};
}

TEST(Formats, DirectedRoundingBracketsTheValue) {
  const Philox random{.key = 21};
  for (DType type : {DType::kF32, DType::kF16, DType::kBf16, DType::kE4m3, DType::kE5m2}) {
    for (uint64_t i = 0; i < 20'000; ++i) {
      const uint64_t bits = random.word(1, i);
      const uint64_t exponent = 1023 - 30 + (bits >> 52 & 0x3ff) % 38;
      const double value = std::bit_cast<double>((bits & 0x800fffffffffffffu) | exponent << 52);
      const uint32_t down = encode_down(type, value), up = encode_up(type, value);
      ASSERT_LE(decode(type, down), value) << dtype_name(type);
      ASSERT_GE(decode(type, up), value) << dtype_name(type);
      ASSERT_LE(rank(type, up) - rank(type, down), 1) << dtype_name(type) << " " << value;
      const uint32_t nearest = encode(type, value);
      ASSERT_TRUE(nearest == down || nearest == up) << dtype_name(type) << " " << value;
    }
  }
}

TEST(Formats, DirectedRoundingAtTheEnds) {
  EXPECT_EQ(encode_up(DType::kF16, 1e-30), 1u);
  EXPECT_EQ(encode_down(DType::kF16, 1e-30), 0u);
  EXPECT_EQ(encode_down(DType::kF16, -1e-30), 0x8001u);
  EXPECT_EQ(encode_up(DType::kF16, -1e-30), 0x8000u);
  EXPECT_EQ(encode_down(DType::kF16, 1e9), 0x7bffu);
  EXPECT_EQ(encode_up(DType::kF16, 1e9), 0x7c00u);
  EXPECT_EQ(encode_down(DType::kE4m3, 1e9), 0x7eu);
  EXPECT_EQ(encode_up(DType::kE4m3, 1e9), 0x7fu);  // NaN: nothing is that large
}

TEST(Formats, Int8RoundsToEvenAndClamps) {
  EXPECT_EQ(decode(DType::kI8, encode(DType::kI8, 2.5)), 2);
  EXPECT_EQ(decode(DType::kI8, encode(DType::kI8, 3.5)), 4);
  EXPECT_EQ(decode(DType::kI8, encode(DType::kI8, -2.5)), -2);
  EXPECT_EQ(decode(DType::kI8, encode(DType::kI8, -1000)), -127);
  EXPECT_EQ(decode(DType::kI8, encode(DType::kI8, kInfinity)), 127);
  EXPECT_EQ(decode(DType::kI8, encode_down(DType::kI8, -0.5)), -1);
  EXPECT_EQ(decode(DType::kI8, encode_up(DType::kI8, 0.5)), 1);
}

TEST(Formats, Constants) {
  EXPECT_EQ(dtype_max(DType::kF16), 65504);
  EXPECT_EQ(dtype_max(DType::kE4m3), 448);
  EXPECT_EQ(dtype_max(DType::kE5m2), 57344);
  EXPECT_EQ(dtype_max(DType::kBf16), 0x1.fep127);
  EXPECT_EQ(dtype_min_subnormal(DType::kF16), 0x1p-24);
  EXPECT_EQ(dtype_min_subnormal(DType::kBf16), 0x1p-133);
  EXPECT_EQ(dtype_min_subnormal(DType::kE4m3), 0x1p-9);
  EXPECT_EQ(dtype_unit_roundoff(DType::kF32), 0x1p-24);
  EXPECT_EQ(dtype_unit_roundoff(DType::kF16), 0x1p-11);
  EXPECT_EQ(dtype_unit_roundoff(DType::kBf16), 0x1p-8);
  EXPECT_EQ(dtype_unit_roundoff(DType::kE4m3), 0x1p-4);
  EXPECT_EQ(dtype_unit_roundoff(DType::kE5m2), 0x1p-3);
  EXPECT_EQ(encode(DType::kF32, std::nan("")), 0x7fffffffu);
}

}  // namespace
}  // namespace kv
