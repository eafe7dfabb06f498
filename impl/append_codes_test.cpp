// Codes that append() writes, against their definition: every fp16 number, in each format. Runs
// once for each architecture that append_convert.cu is compiled for. Kills: a tie rounded away from
// even, a subnormal lost, no saturation, halves of a pair swapped.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kvattn/attention.h"

namespace kvattn {
namespace {

constexpr int64_t kDim = 128, kPatterns = 1 << 16, kTokens = kPatterns / kDim, kPageSlots = 16;

double half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0    ? std::ldexp(fraction, -24)
                      : exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
                                       : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -size : size;
}

/// A code's number; NaN where it has none.
double code_value(uint8_t code, DType format) {
  if (format == DType::kI8) return static_cast<int8_t>(code);
  const int mantissa = format == DType::kE4M3 ? 3 : 2, bias = format == DType::kE4M3 ? 7 : 15;
  const int exponent = (code & 0x7f) >> mantissa, fraction = code & ((1 << mantissa) - 1);
  if (format == DType::kE4M3 ? (code & 0x7f) == 0x7f : exponent == 31) return NAN;
  const double size = exponent == 0
                          ? std::ldexp(fraction, 1 - bias - mantissa)
                          : std::ldexp((1 << mantissa) + fraction, exponent - bias - mantissa);
  return code & 0x80 ? -size : size;
}

/// The code nearest to x, of two equally near ones the even; x beyond the largest: the largest.
uint8_t nearest_code(double x, DType format) {
  uint8_t best = 0;
  double distance = INFINITY;
  const double largest = format == DType::kE4M3 ? 448 : format == DType::kE5M2 ? 57344 : 127;
  x = std::fmin(std::fmax(x, -largest), largest);
  for (int code = 0; code < 256; ++code) {
    const double value = code_value(static_cast<uint8_t>(code), format);
    if (std::isnan(value) || (value != 0 && std::signbit(value) != std::signbit(x))) continue;
    if (value == 0 && format != DType::kI8 && std::signbit(value) != std::signbit(x)) continue;
    const double d = std::abs(value - x);
    if (d < distance || (d == distance && code % 2 == 0)) {
      best = static_cast<uint8_t>(code);
      distance = d;
    }
  }
  return best;
}

void* upload(const void* data, size_t bytes) {
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, bytes), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(p, data, bytes, cudaMemcpyHostToDevice), cudaSuccess);
  return p;
}
template <class T>
TensorView indices(const std::vector<T>& values) {
  return dense_view(upload(values.data(), values.size() * sizeof(T)), DType::kI32,
                    {static_cast<int64_t>(values.size())}, 1);
}

/// The codes of K after every fp16 number was appended.
std::vector<uint8_t> appended_codes(DType format, float scale) {
  std::vector<uint16_t> numbers(kPatterns);
  for (int i = 0; i < kPatterns; ++i) numbers[i] = static_cast<uint16_t>(i);
  std::vector<int32_t> pages(kTokens / kPageSlots);
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<int32_t>(i);
  std::vector<uint8_t> codes(kPatterns);
  AppendCall call;
  call.key = dense_view(upload(numbers.data(), kPatterns * 2), DType::kF16, {kTokens, 1, kDim}, 3);
  call.value = call.key;
  call.cache.key = dense_view(upload(codes.data(), kPatterns), format,
                              {kTokens / kPageSlots, kPageSlots, 1, kDim}, 4);
  call.cache.value = call.cache.key;
  call.cache.value.data = upload(codes.data(), kPatterns);
  call.cache.key_scale = dense_view(upload(&scale, sizeof scale), DType::kF32, {1}, 1);
  call.cache.value_scale = call.cache.key_scale;
  call.cache.block_table = indices(pages);
  call.cache.block_table.rank = 2;
  call.cache.block_table.shape = {1, kTokens / kPageSlots};
  call.cache.block_table.strides = {kTokens / kPageSlots, 1};
  call.token_offsets = indices(std::vector<int32_t>{0, kTokens});
  call.first_slots = indices(std::vector<int32_t>{0});
  const Status status = append(call, {.query_heads = 1,
                                      .kv_heads = 1,
                                      .head_dim = kDim,
                                      .page_slots = kPageSlots,
                                      .dtype = DType::kF16,
                                      .scale = 1,
                                      .cache_dtype = format,
                                      .scales = ScaleGranularity::kTensor});
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(cudaMemcpy(codes.data(), call.cache.key.data, kPatterns, cudaMemcpyDeviceToHost),
            cudaSuccess);
  for (const TensorView& view : {call.key, call.cache.key, call.cache.value, call.cache.key_scale,
                                 call.cache.block_table, call.token_offsets, call.first_slots}) {
    EXPECT_EQ(cudaFree(view.data), cudaSuccess);
  }
  return codes;
}

using Kind = std::pair<DType, float>;
class AppendedCodes : public testing::TestWithParam<Kind> {};

TEST_P(AppendedCodes, AreTheNearest) {
  const auto [format, scale] = GetParam();
  const std::vector<uint8_t> codes = appended_codes(format, scale);
  for (int i = 0; i < kPatterns; ++i) {
    const auto x = static_cast<float>(half_value(static_cast<uint16_t>(i)));
    if (std::isnan(x)) continue;  // live K and V are finite
    const uint8_t want = nearest_code(x / scale, format);
    ASSERT_EQ(codes[i], want) << x << " / " << scale;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, AppendedCodes,
                         testing::Values(Kind{DType::kE4M3, 1.0f}, Kind{DType::kE5M2, 1.0f},
                                         Kind{DType::kI8, 1.0f}, Kind{DType::kE4M3, 0.75f},
                                         Kind{DType::kE5M2, -3.0f}, Kind{DType::kI8, 0.1f}));

}  // namespace
}  // namespace kvattn
