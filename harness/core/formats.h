// Purpose: the number formats of kverify and the only codec between them and double.
// Contract: decode is exact; encode rounds once, to nearest even, from the exact double. fp16
// overflows to infinity at 65520 and above; e4m3 is OCP E4M3FN (no infinity, max 448, NaN 0x7f) and
// e5m2 has infinities. `encode` saturates for neither; `encode_saturating` is CUDA's SATFINITE.
// int8 rounds to nearest even and clamps to [-127, 127].
// Source: IEEE 754-2019, OCP OFP8 1.0, docs/numerics.md §9.
// Example: uint32_t bits = encode(DType::kF16, 0.1); double back = decode(DType::kF16, bits);
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kv {

enum class DType : uint8_t { kF32, kF16, kBf16, kE4m3, kE5m2, kI8 };

/// Bytes of one element.
constexpr uint32_t dtype_bytes(DType t) {
  return t == DType::kF32 ? 4 : (t == DType::kF16 || t == DType::kBf16) ? 2 : 1;
}
/// "f32", "f16", "bf16", "e4m3", "e5m2", "i8".
std::string_view dtype_name(DType type);

/// The bits of `value` in the low bytes. NaN gives the format's canonical NaN.
uint32_t encode(DType type, double value);
uint32_t encode_saturating(DType type, double value);
/// The exact value; NaN and infinities as double has them.
double decode(DType type, uint32_t bits);

/// `count` elements at once, to or from dense little-endian bytes of any alignment.
void decode_row(DType type, const std::byte* bits, size_t count, double* out);
void encode_row(DType type, const double* values, size_t count, std::byte* out);

/// Directed rounding to a representable value, for admissible intervals with faithful rounding.
/// Beyond the largest finite value: infinity, or NaN in a format without infinities.
uint32_t encode_down(DType type, double value);
uint32_t encode_up(DType type, double value);

/// Largest finite value and smallest positive subnormal.
double dtype_max(DType type);
double dtype_min_subnormal(DType type);
/// Unit roundoff: 2^-24, 2^-11, 2^-8, 2^-4, 2^-3; for int8 half a step is 0.5 and this is 0.
double dtype_unit_roundoff(DType type);

}  // namespace kv
