// Compiled with -O3: every loop here is written so that the compiler turns it into SIMD code.
#include "harness/case/fixed_row.h"

#include <bit>
#include <cstring>

#include "harness/core/check.h"

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
void encode_as(const FixedRow& row, std::byte* out, Encode encode) {
  std::array<Bits, limits::kHeadDimMax> bits;
  const uint32_t groups = (row.size + FixedRow::kGroup - 1) / FixedRow::kGroup;
  for (uint32_t i = 0; i < groups * FixedRow::kGroup; ++i) bits[i] = encode(row.fixed[i]);
  std::memcpy(out, bits.data(), row.size * sizeof(Bits));
}

// Round half to even at bit 16 of the float's bits; no element is large enough to overflow.
void encode_bf16(const FixedRow& row, std::byte* out) {
  const float scale = scale_of(row);
  encode_as<uint16_t>(row, out, [scale](int32_t fixed) {
    const uint32_t f = float_bits(fixed, scale);
    return static_cast<uint16_t>((f + 0x7FFF + ((f >> 16) & 1)) >> 16);
  });
}

// Round half to even at bit 13 and rebias the exponent; below 2^-14 the element is a multiple of
// 2^-21, hence of fp16's smallest subnormal 2^-24, and is exact.
void encode_f16(const FixedRow& row, std::byte* out) {
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

// 8-bit formats are rare; the codec of core will do.
void encode_8_bit(const FixedRow& row, DType type, std::byte* out) {
  const double scale = scale_of(row);
  for (uint32_t i = 0; i < row.size; ++i) {
    out[i] = static_cast<std::byte>(encode_saturating(type, row.fixed[i] * scale));
  }
}

}  // namespace

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
      return encode_f16(row, out.data());
    case DType::kBf16:
      return encode_bf16(row, out.data());
    case DType::kE4m3:
    case DType::kE5m2:
    case DType::kI8:
      return encode_8_bit(row, type, out.data());
  }
}

void random_words(uint64_t key, std::span<uint32_t> words) {
  KV_CHECK(words.size() % FixedRow::kGroup == 0, "random words come in groups of 32");
  constexpr int kLanes = 8;
  for (size_t group = 0; group * FixedRow::kGroup < words.size(); ++group) {
    uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      c0[l] = static_cast<uint32_t>(group * kLanes) + l;
      c1[l] = c2[l] = c3[l] = 0;
    }
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int l = 0; l < kLanes; ++l) {
        const uint64_t p0 = uint64_t{0xD2511F53} * c0[l];
        const uint64_t p1 = uint64_t{0xCD9E8D57} * c2[l];
        const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1[l] ^ k0;
        const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3[l] ^ k1;
        c1[l] = static_cast<uint32_t>(p1);
        c3[l] = static_cast<uint32_t>(p0);
        c0[l] = n0;
        c2[l] = n2;
      }
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    uint32_t* out = words.data() + group * FixedRow::kGroup;
    for (int l = 0; l < kLanes; ++l) {
      out[l] = c0[l];
      out[kLanes + l] = c1[l];
      out[2 * kLanes + l] = c2[l];
      out[3 * kLanes + l] = c3[l];
    }
  }
}

}  // namespace kv
