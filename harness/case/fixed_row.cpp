// Compiled with -O3: every loop here is written so that the compiler turns it into SIMD code.
#include "harness/case/fixed_row.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <bit>
#include <cstring>

#include "harness/core/check.h"
#include "harness/core/cpu.h"
#include "harness/core/wide.h"

namespace kv {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are little endian");

// Exact: |fixed| <= 2^24, and the scale is a power of two.
inline uint32_t float_bits(int32_t fixed, float scale) {
  return std::bit_cast<uint32_t>(static_cast<float>(fixed) * scale);
}

inline float scale_of(const FixedRow& row) {
  // 2^(exponent - 21), built from its bits.
  const int biased = 127 + row.exponent - FixedRow::kFractionBits;
  return std::bit_cast<float>(static_cast<uint32_t>(biased) << 23);
}

template <class Bits, class Encode>
[[gnu::always_inline]] inline void encode_as(const FixedRow& row, std::byte* out, Encode encode) {
  std::array<Bits, limits::kHeadDimMax> bits;
  const uint32_t groups = (row.size + FixedRow::kGroup - 1) / FixedRow::kGroup;
  for (uint32_t i = 0; i < groups * FixedRow::kGroup; ++i) bits[i] = encode(row.fixed[i]);
  std::memcpy(out, bits.data(), row.size * sizeof(Bits));
}

// Round half to even at bit 16 of the float's bits; no element is large enough to overflow.
KV_WIDE void encode_bf16(const FixedRow& row, std::byte* out) {
  const float scale = scale_of(row);
  encode_as<uint16_t>(row, out, [scale](int32_t fixed) {
    const uint32_t f = float_bits(fixed, scale);
    return static_cast<uint16_t>((f + 0x7FFF + ((f >> 16) & 1)) >> 16);
  });
}

// Round half to even at bit 13 and rebias the exponent; below 2^-14 the element is a multiple of
// 2^-21, hence of fp16's smallest subnormal 2^-24, and is exact.
KV_WIDE void encode_f16(const FixedRow& row, std::byte* out) {
  const float scale = scale_of(row);
  const int exponent = row.exponent;
  const int32_t subnormal_below = exponent >= 7 ? 0 : 1 << (7 - exponent);
  const int subnormal_shift = exponent >= 7 ? 0 : exponent + 3;
  encode_as<uint16_t>(row, out, [=](int32_t fixed) {
    const uint32_t f = float_bits(fixed, scale);
    const uint32_t magnitude = f & 0x7FFFFFFF;
    const uint32_t rounded = magnitude + 0xFFF + ((magnitude >> 13) & 1);
    const uint32_t normal = (rounded - (112u << 23)) >> 13;
    const int32_t absolute = fixed < 0 ? -fixed : fixed;
    const uint32_t subnormal = static_cast<uint32_t>(absolute) << subnormal_shift;
    const uint32_t value = absolute < subnormal_below || absolute == 0 ? subnormal : normal;
    return static_cast<uint16_t>(value | (f >> 16 & 0x8000));
  });
}

#if defined(__SSE2__)

// The same by the conversion of the machine: what it rounds is exact, to nearest even it rounds,
// and subnormal numbers it always keeps.
[[gnu::target("avx2,f16c")]] void encode_f16_at_once(const FixedRow& row, std::byte* out) {
  const __m256 scale = _mm256_set1_ps(scale_of(row));
  const auto halves = [&](uint32_t i) __attribute__((target("avx2,f16c"))) {
    const auto* from = reinterpret_cast<const __m256i*>(row.fixed.data() + i);
    const __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_loadu_si256(from)), scale);
    return _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT);
  };
  uint32_t i = 0;
  for (; i + 8 <= row.size; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * i), halves(i));
  if (i == row.size) return;
  const __m128i tail = halves(i);
  std::memcpy(out + 2 * i, &tail, 2 * (row.size - i));
}

bool converts_halves() { return chosen_cpu() >= Cpu::kAvx2; }

#else

bool converts_halves() { return false; }
void encode_f16_at_once(const FixedRow&, std::byte*) {}

#endif

// 8-bit formats are rare; the codec of core will do.
void encode_8_bit(const FixedRow& row, DType type, std::byte* out) {
  const double scale = scale_of(row);
  for (uint32_t i = 0; i < row.size; ++i) {
    out[i] = static_cast<std::byte>(encode_saturating(type, row.fixed[i] * scale));
  }
}

}  // namespace

void encode_f16_portably(const FixedRow& row, std::span<std::byte> out) {
  KV_CHECK(out.size() == size_t{row.size} * 2, "size of a row");
  encode_f16(row, out.data());
}

void encode_row(const FixedRow& row, DType type, std::span<std::byte> out) {
  KV_CHECK(row.exponent >= 0 && row.exponent <= 12, "exponent of a fixed-point row");
  KV_CHECK(out.size() == size_t{row.size} * dtype_bytes(type), "size of a row");
  switch (type) {
    case DType::kF32: {
      const float scale = scale_of(row);
      encode_as<uint32_t>(row, out.data(),
                          [scale](int32_t fixed) { return float_bits(fixed, scale); });
      return;
    }
    case DType::kF16:
      return converts_halves() ? encode_f16_at_once(row, out.data()) : encode_f16(row, out.data());
    case DType::kBf16:
      return encode_bf16(row, out.data());
    case DType::kE4m3:
    case DType::kE5m2:
    case DType::kI8:
      return encode_8_bit(row, type, out.data());
  }
}

}  // namespace kv
